//! Copies the pages of docs/ into the Python package, where `spindle help TOPIC` finds them once it is installed.

use std::path::Path;
use std::{env, fs, io};

fn main() {
    // Not `env!`: cargo reuses the program for a copy of the project elsewhere.
    let crate_folder = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let root = Path::new(&crate_folder).join("../..");
    let pages = root.join("docs");
    println!("cargo:rerun-if-changed={}", pages.display());
    let copies = root.join("python/spindle/pages");
    if let Err(error) = copy_pages(&pages, &copies) {
        panic!("{}: {error}", copies.display());
    }
}

fn copy_pages(from: &Path, to: &Path) -> io::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    copy_folder(from, to)
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_folder(&path, &copy)?;
        } else if path.extension().is_some_and(|end| end == "md") {
            fs::create_dir_all(to)?;
            fs::write(copy, fs::read(&path)?)?;
        }
    }
    Ok(())
}
