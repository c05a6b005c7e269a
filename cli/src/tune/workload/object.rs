//! The costs as JSON.

use serde_json::{Value, json};

use super::{Costs, Priced, cost::Cost, rivals::Rival};
use crate::tune::{call::Call, nearest::Nearest};

impl Costs<'_> {
    /// Everything as one object. Names and meanings are stable.
    pub(super) fn object(&self) -> Value {
        let workload = &self.workload;
        let mut asked = self.asked.object();
        asked["workload"] = json!({
            "look_ups": workload.look_ups,
            "absent": workload.absent,
            "insertions": workload.insertions,
            "removals": workload.removals,
            "false_positive_ns": workload.false_positive,
            "ns_per_mib": workload.mib,
            "cache_bytes": self.asked.workload.cache,
        });
        let items = self.asked.planned(self.asked.items.now);
        let (disturbed, rows) = self.times.disturbed();
        json!({
            "asked": asked,
            "times": {
                "processor": self.times.machine().processor,
                "this_machine": self.is_here(),
                "disturbed_rows": disturbed,
                "rows": rows,
                "largest_table_bytes": self.times.most_bytes(),
            },
            "candidates": self.filters.iter().map(|priced| candidate(priced, items)).collect::<Vec<_>>(),
            "others": self.rivals.priced.iter().map(other).collect::<Vec<_>>(),
            "others_rejected": self.rivals.rejected.iter()
                .map(|(name, reason)| json!({ "name": name, "reason": reason }))
                .collect::<Vec<_>>(),
            "others_measured_items": self.rivals.items,
            "cost_without_filter_ns": self.without(),
            "pays": self.pays(),
            "nearest": self.nearest.as_ref().map(Nearest::object),
            "builder": self.call.as_ref().map(Call::rust),
            "command": self.call.as_ref().map(Call::command),
        })
    }
}

fn candidate(priced: &Priced, items: usize) -> Value {
    let mut object = crate::tune::object::candidate(&priced.candidate, items);
    object["cost_ns"] = cost(&priced.cost);
    object
}

fn other(rival: &Rival) -> Value {
    json!({
        "name": rival.name,
        "table_bytes": rival.bytes,
        "false_positive_rate": rival.rate,
        "cost_ns": cost(&rival.cost),
    })
}

fn cost(cost: &Cost) -> Value {
    json!({
        "total": cost.total(),
        "look_ups": cost.look_ups,
        "changes": cost.changes,
        "false_positives": cost.false_positives,
        "memory": cost.memory,
    })
}
