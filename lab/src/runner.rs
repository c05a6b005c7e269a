//! Runs experiments as `koel experiment` does: reports progress, stops at Ctrl-C, and writes the report.

use std::{
    fmt,
    io::{self, Write as _},
};

use anyhow::anyhow;

use crate::{Interrupt, Outcome, Plan, Settings, record::ResultFiles, report};

/// Runs these experiments one after the other, and writes the report of the folder to [`report::FILE`] there.
///
/// It writes the number of cases and the warnings of each experiment to standard error, with a progress bar if that is a terminal,
/// and nothing to standard output. Ctrl-C stops it; the message then begins with the name `program`. The plans have already checked
/// everything that can be checked before the first experiment begins ([`Plan::new`]).
///
/// # Errors
/// If results in the folder cannot be part of the report, if a case fails, if a file cannot be written, or if the program has its
/// own handler for Ctrl-C. Cases that were measured before are kept.
pub fn run(program: &str, plans: Vec<Plan<'_>>, settings: &Settings) -> anyhow::Result<Outcome> {
    report::check(&settings.folder, &plans.iter().map(Plan::name).collect::<Vec<_>>())?;
    let interrupt = Interrupt::on_ctrl_c()?;
    let folder = settings.folder.display();
    let remedy = if settings.again { "the same command without --again continues" } else { "the same command continues" };
    let kept = format!("the results so far are in {folder}, and {remedy}");
    let mut ended = Ok(Outcome::Complete);
    let mut plans = plans.into_iter();
    for plan in plans.by_ref() {
        say(format_args!("{}\n", announcement(&plan)));
        let name = plan.name();
        ended = plan.run(&interrupt).map_err(|error| anyhow!("{error:#}; {kept}"));
        if !matches!(ended, Ok(Outcome::Complete)) {
            break;
        }
        for warning in ResultFiles::new(&settings.folder, name).read()?.into_iter().flat_map(|record| record.warnings) {
            say(format_args!("{name}: {warning}\n"));
        }
    }
    // Even after a failure, the report shows the results so far.
    let written = report::write(&settings.folder);
    let outcome = ended?;
    written?;
    if outcome == Outcome::Interrupted {
        let rest: Vec<_> = plans.map(|plan| plan.name()).collect();
        let rest = if rest.is_empty() || !settings.again {
            String::new()
        } else {
            format!("; not measured again yet: {}", rest.join(", "))
        };
        say(format_args!("{program}: interrupted; {kept}{rest}\n"));
    }
    Ok(outcome)
}

/// Returns a line with the number of cases, and how many of them have been measured before.
fn announcement(plan: &Plan<'_>) -> String {
    let (all, left) = (format!("{}: {}", plan.name(), report::counted(plan.cases(), "case")), plan.cases_left());
    let by = plan.other_build().map_or_else(String::new, |build| format!(" by another build: {build}"));
    match plan.cases() - left {
        0 => all,
        _ if left == 0 => format!("{all}, all of them measured before{by}"),
        known => format!("{all}, {known} of them measured before"),
    }
}

/// Writes to standard error. If that fails, there is nowhere left to report it.
pub fn say(text: fmt::Arguments<'_>) {
    io::stderr().lock().write_fmt(text).ok();
}
