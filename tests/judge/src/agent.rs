//! The mark that the proxy leaves in the User-Agent: ` shoal/<ring>/<shard>@<term>`, and ` :<slot>.<epoch>` after
//! it on a write to a slot (DESIGN.md, "Exact formats", User-Agent).

/// What a well-formed mark says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark<'a> {
    /// The ring whose proxy made it.
    pub ring: &'a str,
    /// The shard that the proxy served.
    pub shard: &'a str,
    /// How often that shard had been claimed.
    pub term: u64,
    /// What the proxy held the write to be; absent where no slot is asked for.
    pub claim: Option<Claim>,
}

/// "The object is in this slot, and I own it since this epoch."
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The slot of the object's key.
    pub slot: u8,
    /// The epoch at which the shard says it owns the slot.
    pub epoch: u64,
}

/// Why a User-Agent holds no mark that can be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// There is none.
    Absent,
    /// It is not in the form that the proxy makes.
    Malformed,
    /// There are several; a proxy takes out what the client sent.
    Repeated,
}

/// Reads the mark at the end of a User-Agent.
pub fn read_mark(agent: &str) -> Result<Mark<'_>, Flaw> {
    match marks(agent).count() {
        0 => Err(Flaw::Absent),
        1 => parse(agent).ok_or(Flaw::Malformed),
        _ => Err(Flaw::Repeated),
    }
}

/// Whether some token of the User-Agent names that ring, well-formed or not.
pub(crate) fn names_ring(agent: &str, ring: &str) -> bool {
    marks(agent).any(|mark| mark.split('/').next() == Some(ring))
}

/// What follows `shoal/` in each token that begins so.
fn marks(agent: &str) -> impl Iterator<Item = &str> {
    agent.split_whitespace().filter_map(|token| token.strip_prefix("shoal/"))
}

fn parse(agent: &str) -> Option<Mark<'_>> {
    // Without a part of the client's own, the server has trimmed the space before the mark.
    let mark = agent.strip_prefix("shoal/").or_else(|| Some(agent.rsplit_once(" shoal/")?.1))?;
    let (who, claim) = match mark.split_once(' ') {
        Some((who, claim)) => (who, Some(parse_claim(claim)?)),
        None => (mark, None),
    };
    let (ring, shard) = who.split_once('/')?;
    let (shard, term) = shard.split_once('@')?;
    let named = !ring.is_empty() && !shard.is_empty() && !shard.contains('/');
    named.then_some(Mark { ring, shard, term: decimal(term)?, claim })
}

fn parse_claim(text: &str) -> Option<Claim> {
    let (slot, epoch) = text.strip_prefix(':')?.split_once('.')?;
    Some(Claim { slot: decimal(slot)?.try_into().ok()?, epoch: decimal(epoch)? })
}

/// A number in the one form that the proxy writes: digits, no sign, no leading zero.
fn decimal(text: &str) -> Option<u64> {
    let canonical = text == "0" || !text.starts_with('0');
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    (canonical && digits).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_proxy_writes() {
        let claim = Some(Claim { slot: 17, epoch: 4 });
        let mark = Mark { ring: "kcm", shard: "kcm-0", term: 3, claim };
        let agent = "kube-controller-manager/v1.36.3 (linux/amd64) kubernetes/abc/job-controller";
        assert_eq!(read_mark(&format!("{agent} shoal/kcm/kcm-0@3 :17.4")), Ok(mark));
        assert_eq!(read_mark("shoal/kcm/kcm-0@3 :17.4"), Ok(mark));
        assert_eq!(read_mark("x shoal/kcm/kcm-0@3"), Ok(Mark { claim: None, ..mark }));
    }

    #[test]
    fn tells_the_flaws_apart() {
        assert_eq!(read_mark("kubectl/v1.36 (shoal)"), Err(Flaw::Absent));
        assert_eq!(read_mark("a shoal/kcm/kcm-1@1 shoal/kcm/kcm-0@1 :17.4"), Err(Flaw::Repeated));
        assert_eq!(read_mark("a\tshoal/kcm/kcm-1@1 b shoal/kcm/kcm-0@1 :17.4"), Err(Flaw::Repeated));
        for end in [
            "kcm",
            "kcm/",
            "kcm/kcm-0",
            "kcm/kcm-0@",
            "kcm/kcm-0@x",
            "kcm/kcm-0@+1",
            "kcm/kcm-0@01",
            "/kcm-0@1",
            "kcm/a/b@1",
            "kcm/kcm-0@1 ",
            "kcm/kcm-0@1 17.1",
            "kcm/kcm-0@1 :256.1",
            "kcm/kcm-0@1 :1",
            "kcm/kcm-0@1 :1.",
            "kcm/kcm-0@1 :1.1 more",
            "kcm/kcm-0@1  :1.1",
            "kcm/kcm-0@1 :1.1...TRUNCATED",
            "kcm/@1",
        ] {
            assert_eq!(read_mark(&format!("a shoal/{end}")), Err(Flaw::Malformed), "{end}");
        }
    }

    #[test]
    fn finds_the_name_of_a_ring_in_broken_marks_too() {
        assert!(names_ring("a shoal/kcm/whatever b", "kcm"));
        assert!(names_ring("a shoal/kcm", "kcm"));
        assert!(!names_ring("a shoal/kcm-other/kcm-0@1", "kcm"));
        assert!(!names_ring("ashoal/kcm/kcm-0@1", "kcm"));
    }
}
