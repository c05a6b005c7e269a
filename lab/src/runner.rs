//! Runs experiments as `koel experiment` does: says what it does, stops at Ctrl-C, writes the report.

use std::{
    fmt,
    io::{self, Write as _},
};

use anyhow::anyhow;

use crate::{Interrupt, Outcome, Plan, Settings, record::Place, report};

/// Runs these experiments one after the other, and writes the report of the folder to [`report::FILE`] there.
///
/// Says on standard error how many cases each of them has and what its results do not show, shows a progress bar if that is a
/// terminal, and stops at Ctrl-C; `program` is the name that its message begins with. Prints nothing on standard output.
/// Everything that can be checked was checked when they were planned ([`Plan::new`]), before the first one begins.
///
/// # Errors
/// If the report cannot have one of the results in the folder, if a case fails, or if a file cannot be written. What was
/// measured before is kept. If the program handles Ctrl-C itself.
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
        for warning in Place::new(&settings.folder, name).read()?.into_iter().flat_map(|record| record.warnings) {
            say(format_args!("{name}: {warning}\n"));
        }
    }
    // However it ended: the report shows what there is.
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

/// How much there is to measure.
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
