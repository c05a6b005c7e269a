//! The comparison with `--out`: runs it as an experiment, whose rounds, charts and report go to a folder.

use std::path::Path;

use koel_lab::{Interrupt, Outcome, Plan, Scope, Settings, report};

use crate::{experiment, options::Options, print, say};

/// Measures the rounds that the folder does not have yet. Returns the number of filters that failed, `None` if interrupted.
pub(crate) fn write(options: &Options, folder: &Path) -> anyhow::Result<Option<usize>> {
    let settings = Settings {
        folder: folder.to_owned(),
        // There is no seed, since the keys are always the same; --items limits the size.
        scope: Scope { quick: options.quick(), seed: 0, max_slots: None },
        threads: 1,
        again: options.again(),
    };
    let peers = options.peers();
    let plan = Plan::new(peers, &settings)?;
    report::check(folder, &[plan.name()])?;
    let interrupt = Interrupt::on_ctrl_c()?;
    let (rounds, left) = (plan.cases(), plan.cases_left());
    let known = rounds - left;
    let by = plan.other_build().map_or_else(String::new, |build| format!(" by another build: {build}"));
    let found = if known > 0 { format!(", {known} of them measured before{by}") } else { String::new() };
    let name = plan.name();
    say(format_args!("{name}: {rounds} round{}{found}\n", if rounds == 1 { "" } else { "s" }));
    let outcome = plan.run(&interrupt)?;
    report::write(folder)?;
    if outcome == Outcome::Interrupted {
        let folder = folder.display();
        say(format_args!(
            "koel-peers: interrupted; the finished rounds are in {folder}, and the same command continues from there\n"
        ));
        return Ok(None);
    }
    let recorded = koel_lab::read_results(folder, name)?;
    let rows = experiment::rows(&recorded.map_or_else(Vec::new, |recorded| recorded.measured));
    print(&format!("{}\n", folder.join(report::FILE).display()))?;
    Ok(Some(rows.iter().filter(|row| row.failure().is_some()).count()))
}
