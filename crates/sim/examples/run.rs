//! Runs a preset on a machine file: `run MACHINE.toml PRESET [KEY=VALUE ...]`; prints the figures as JSON.

use spindle_sim::{Machine, SimOptions, simulate};
use spindle_workload::{Workload, preset_text};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (machine, preset) = (args.next().ok_or("MACHINE")?, args.next().ok_or("PRESET")?);
    let machine = Machine::parse(&std::fs::read_to_string(&machine)?, &machine)?;
    let options: Vec<(String, String)> = args
        .filter_map(|arg| {
            arg.split_once('=')
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
        })
        .collect();
    let workload = Workload::parse(preset_text(&preset)?, &preset, &preset, &options)?;
    let figures = simulate(&machine, &workload, SimOptions::default())?;
    println!("{}", serde_json::to_string_pretty(&figures)?);
    Ok(())
}
