//! The comparison with `--out`: runs it as an experiment, whose rounds, charts and report go to a folder.

use std::path::Path;

use koel_lab::{Measured, Outcome, Plan, Scope, Settings, report};

use crate::{experiment, options::Options, print};

/// Measures the rounds that the folder does not have yet. Returns the number of filters that failed, `None` if interrupted.
pub(crate) fn write(options: &Options, folder: &Path) -> anyhow::Result<Option<usize>> {
    let settings = Settings {
        folder: folder.to_owned(),
        // There is no seed, since the keys are always the same; --items limits the size.
        scope: Scope { quick: options.quick(), seed: 0, max_slots: None },
        threads: 1,
        again: options.again(),
    };
    let plan = Plan::new(options.peers(), &settings)?;
    let name = plan.name();
    if koel_lab::run("koel-peers", vec![plan], &settings)? == Outcome::Interrupted {
        return Ok(None);
    }
    let recorded = koel_lab::read_results(folder, name)?;
    let measured = recorded.map_or_else(Vec::new, |recorded| recorded.measured);
    let rows = experiment::rows(&Measured::typed(&measured)?);
    print(&format!("{}\n", folder.join(report::FILE).display()))?;
    Ok(Some(rows.iter().filter(|row| row.failure().is_some()).count()))
}
