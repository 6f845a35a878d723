//! Who owns what, without IO.
