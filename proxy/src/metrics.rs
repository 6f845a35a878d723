//! Every metric of the proxy, declared once. Label values come from fixed sets only.

use prometheus::{
    Encoder, Gauge, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder, core::Collector,
};

/// From a map that is followed at once to a deposed shard's slots.
const HANDOVER_SECONDS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

/// The proxy's metrics and their registry.
pub struct Metrics {
    registry: Registry,
    /// Requests answered, by verb and status code.
    pub requests: IntCounterVec,
    /// Writes that were forwarded, by verb.
    pub writes: IntCounterVec,
    /// Writes that ended at the proxy because another shard owns the object, by verb and reason.
    pub refused_writes: IntCounterVec,
    /// Requests that were refused unread, by reason: what in them is unclear.
    pub refused_requests: IntCounterVec,
    /// Objects of lists and watches that were shown to the controller.
    pub shown_objects: IntCounter,
    /// Objects of lists and watches that belong to other shards.
    pub hidden_objects: IntCounter,
    /// Filtered streams that had to be broken off, because what came was not what was asked for.
    pub broken_streams: IntCounter,
    /// Responses under way, by verb.
    pub streams: IntGaugeVec,
    /// Bytes of bodies and tunnels, by direction: `received` from upstream, `sent` to the controller; `forwarded` from
    /// it, of tunnels only.
    pub bytes: IntCounterVec,
    /// Connections from the controller.
    pub connections: IntGauge,
    /// Connections to the admin and metrics listeners.
    pub admin_connections: IntGauge,
    /// Connections to API servers, by cluster and traffic: `call`, `stream` or `tunnel`.
    pub upstream_connections: IntGaugeVec,
    /// Slots that this shard owns.
    pub owned_slots: IntGauge,
    /// Look-ups of an object's uid and version, for writes that demand too little by themselves.
    pub fence_lookups: IntCounter,
    /// Writes that were sent again because their object had changed between look-up and write.
    pub fence_retries: IntCounter,
    /// The version of the map that is followed.
    pub map_version: IntGauge,
    /// The term of this shard's identity; 0 without one.
    pub term: IntGauge,
    /// Slots that came and went, by direction: `gained`, `released` after all writes had ended, `lost` without that.
    pub moved_slots: IntCounterVec,
    /// How long the parts of a hand-over took here, by phase: `prepare`, `drain`, `hide`, `show`, and `whole`, from when the
    /// last owner was told to let go until the gate opened.
    pub handover: HistogramVec,
    /// How long the identity Lease holds still, in seconds.
    pub lease_margin: Gauge,
    /// Writes whose outcome is not known and may still come.
    pub unknown_writes: IntGauge,
    /// What the view does.
    pub view: ViewMetrics,
}

/// What is measured of slots that come and go in the view.
pub struct ViewMetrics {
    /// Slots that are shown as they were lost.
    pub frozen_slots: IntGauge,
    /// Bytes of objects that were fetched for watches before their slots were shown.
    pub prefetched_bytes: IntCounter,
    /// Events that watches were told from here, by type.
    pub synthetic_events: IntCounterVec,
    /// Watches that ended, or did not begin, because they could not be told of a change of the view.
    pub forced_relists: IntCounter,
}

// === impl Metrics ===

impl Metrics {
    /// Declares every metric. Errors only if two had the same name.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        Ok(Self {
            requests: counters(&registry, "requests_total", "Requests answered.", &["verb", "code"])?,
            writes: counters(&registry, "writes_total", "Writes forwarded to the API server.", &["verb"])?,
            refused_writes: counters(
                &registry,
                "refused_writes_total",
                "Writes refused because this shard does not own the object.",
                &["verb", "reason"],
            )?,
            refused_requests: counters(
                &registry,
                "refused_requests_total",
                "Requests refused because it is unclear what they ask for.",
                &["reason"],
            )?,
            shown_objects: counter(
                &registry,
                "shown_objects_total",
                "Objects of filtered lists and watches shown.",
            )?,
            hidden_objects: counter(
                &registry,
                "hidden_objects_total",
                "Objects of filtered lists and watches that belong to other shards.",
            )?,
            broken_streams: counter(
                &registry,
                "broken_streams_total",
                "Filtered responses that were broken off.",
            )?,
            streams: gauges(&registry, "streams", "Responses under way.", &["verb"])?,
            bytes: counters(
                &registry,
                "bytes_total",
                "Bytes of response bodies and tunnels.",
                &["direction"],
            )?,
            connections: gauge(&registry, "connections", "Connections from the controller.")?,
            admin_connections: gauge(
                &registry,
                "admin_connections",
                "Connections to the admin and metrics listeners.",
            )?,
            upstream_connections: gauges(
                &registry,
                "upstream_connections",
                "Connections to API servers.",
                &["cluster", "traffic"],
            )?,
            owned_slots: gauge(&registry, "owned_slots", "Slots that this shard owns.")?,
            fence_lookups: counter(
                &registry,
                "fence_lookups_total",
                "Look-ups of an object's uid and version for a write.",
            )?,
            fence_retries: counter(
                &registry,
                "fence_retries_total",
                "Writes that were sent again because their object had changed meanwhile.",
            )?,
            map_version: gauge(&registry, "map_version", "The version of the ShardMap that is followed.")?,
            term: gauge(&registry, "term", "The term of this shard's identity; 0 without one.")?,
            moved_slots: counters(
                &registry,
                "moved_slots_total",
                "Slots that came to this shard and went from it.",
                &["direction"],
            )?,
            handover: registered(
                &registry,
                HistogramVec::new(
                    HistogramOpts::from(options(
                        "handover_seconds",
                        "How long the parts of a hand-over took.",
                    ))
                    .buckets(HANDOVER_SECONDS.to_vec()),
                    &["phase"],
                )?,
            )?,
            lease_margin: registered(
                &registry,
                Gauge::with_opts(options(
                    "lease_margin_seconds",
                    "How long the identity Lease holds still.",
                ))?,
            )?,
            unknown_writes: gauge(
                &registry,
                "unknown_writes",
                "Writes whose outcome is not known and may still come.",
            )?,
            view: ViewMetrics::new(&registry)?,
            registry,
        })
    }

    /// Everything in the Prometheus text format.
    pub fn render(&self) -> Result<Vec<u8>, prometheus::Error> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(text)
    }
}

// === impl ViewMetrics ===

impl ViewMetrics {
    fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        Ok(Self {
            frozen_slots: gauge(registry, "frozen_slots", "Slots that are shown though lost.")?,
            prefetched_bytes: counter(
                registry,
                "prefetched_bytes_total",
                "Bytes of objects fetched before their slots were shown.",
            )?,
            synthetic_events: counters(
                registry,
                "synthetic_events_total",
                "Events that tell watches of slots that came or went.",
                &["type"],
            )?,
            forced_relists: counter(
                registry,
                "forced_relists_total",
                "Watches whose clients had to ask for everything.",
            )?,
        })
    }
}

fn options(name: &str, help: &str) -> Opts {
    Opts::new(name, help).namespace("shoal")
}

fn registered<C: Collector + Clone + 'static>(
    registry: &Registry,
    metric: C,
) -> Result<C, prometheus::Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

fn counter(registry: &Registry, name: &str, help: &str) -> Result<IntCounter, prometheus::Error> {
    registered(registry, IntCounter::with_opts(options(name, help))?)
}

fn counters(
    registry: &Registry,
    name: &str,
    help: &str,
    by: &[&str],
) -> Result<IntCounterVec, prometheus::Error> {
    registered(registry, IntCounterVec::new(options(name, help), by)?)
}

fn gauge(registry: &Registry, name: &str, help: &str) -> Result<IntGauge, prometheus::Error> {
    registered(registry, IntGauge::with_opts(options(name, help))?)
}

fn gauges(
    registry: &Registry,
    name: &str,
    help: &str,
    by: &[&str],
) -> Result<IntGaugeVec, prometheus::Error> {
    registered(registry, IntGaugeVec::new(options(name, help), by)?)
}
