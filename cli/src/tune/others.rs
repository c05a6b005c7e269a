//! The cost of other structures.

use koel_lab::structures::Structure;

/// Other structures at one rate.
pub(super) struct Others {
    /// The smallest first, each with its bits per item.
    pub(super) rows: Vec<(Structure, f64)>,
    /// Those left out, each with the reason.
    pub(super) rejected: Vec<(Structure, &'static str)>,
    pub(super) rate: Option<f64>,
}

impl Others {
    /// All structures at this rate; with `deletes`, only those that support deletion. Without a rate above 0, none can be compared.
    pub(super) fn at(rate: Option<f64>, deletes: bool) -> Self {
        let rate = rate.filter(|&rate| rate > 0.0);
        let mut others = Self { rows: Vec::new(), rejected: Vec::new(), rate };
        let Some(rate) = rate else { return others };
        for structure in Structure::ALL {
            match structure.bits_per_item(rate) {
                _ if deletes && !structure.deletes() && is_real(structure) => {
                    others.rejected.push((structure, "cannot delete"));
                }
                Some(bits) => others.rows.push((structure, bits)),
                None => others.rejected.push((structure, "cannot have that rate")),
            }
        }
        others.rows.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        others
    }
}

/// The lower bound is not a structure: no operations can be supported or not.
pub(super) fn is_real(structure: Structure) -> bool {
    structure != Structure::LowerBound
}
