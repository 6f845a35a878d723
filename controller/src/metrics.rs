//! Every metric of the control plane, declared once. The label `ring` is `namespace/name`; the others come from fixed sets.

use prometheus::{
    CounterVec, Encoder, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry,
    TextEncoder, core::Collector,
};

/// Hand-overs take from a few milliseconds to the time that a silent proxy is waited for.
const BUCKETS: [f64; 12] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 60.0];

/// The metrics and their registry.
pub struct Metrics {
    registry: Registry,
    /// Slots by state: `owned` at rest, `moving`, `orphan`.
    pub slots: IntGaugeVec,
    /// Slots that changed owner, by reason.
    pub moves: IntCounterVec,
    /// Identities taken from silent holders.
    pub deposed: IntCounterVec,
    /// Time without an answer from the API server, in seconds; it is not held against the shards.
    pub blind: CounterVec,
    /// Slots without an owner, times seconds.
    pub unowned: CounterVec,
    /// The version of the map.
    pub map_version: IntGaugeVec,
    /// How long each phase of a hand-over took, in seconds.
    pub handover: HistogramVec,
    /// Requests to the API server that failed, by kind of failure.
    pub faults: IntCounterVec,
}

// === impl Metrics ===

impl Metrics {
    /// Declares every metric. Errors only if two had the same name.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let counters =
            |name, help, by: &[&str]| registered(&registry, IntCounterVec::new(options(name, help), by)?);
        let seconds = |name, help| registered(&registry, CounterVec::new(options(name, help), &["ring"])?);
        let gauges =
            |name, help, by: &[&str]| registered(&registry, IntGaugeVec::new(options(name, help), by)?);
        let handover = HistogramOpts::from(options("handover_seconds", "Time of each phase of a hand-over."));
        let handover = HistogramVec::new(handover.buckets(BUCKETS.to_vec()), &["ring", "phase"])?;
        Ok(Self {
            slots: gauges("slots", "Slots by state.", &["ring", "state"])?,
            moves: counters("moves_total", "Slots that changed owner.", &["ring", "reason"])?,
            deposed: counters("deposed_total", "Identities taken from silent holders.", &["ring"])?,
            blind: seconds("blind_seconds_total", "Time without an answer from the API server.")?,
            unowned: seconds("unowned_slot_seconds_total", "Slots without an owner, times seconds.")?,
            map_version: gauges("map_version", "Version of the ShardMap.", &["ring"])?,
            handover: registered(&registry, handover)?,
            faults: counters("faults_total", "Requests to the API server that failed.", &["ring", "kind"])?,
            registry,
        })
    }

    /// Everything in the Prometheus text format.
    pub fn render(&self) -> Result<Vec<u8>, prometheus::Error> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(text)
    }

    /// Forgets the gauges of a ring that is gone.
    pub fn forget(&self, ring: &str) {
        for state in ["owned", "moving", "orphan"] {
            // It fails if there is none, which is what is wanted.
            let _ = self.slots.remove_label_values(&[ring, state]);
        }
        let _ = self.map_version.remove_label_values(&[ring]);
    }
}

fn options(name: &str, help: &str) -> Opts {
    Opts::new(name, help).namespace("shoal").subsystem("ring")
}

fn registered<C: Collector + Clone + 'static>(
    registry: &Registry,
    metric: C,
) -> Result<C, prometheus::Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}
