"""Loop devices of tests: one that ends leaves the others' alone."""

from __future__ import annotations

from pathlib import Path

from tests.workbench import DETACH_LOOP, Workbench


def test_a_loop_device_that_another_test_has_by_now_stays(bench: Workbench, tmp_path: Path) -> None:
    folder = tmp_path / "earlier"
    folder.mkdir()
    earlier = Workbench(folder)
    device = earlier.loop()
    image = bench.image()
    bench.exchange(device, image)
    bench.undo.callback(bench.run, *DETACH_LOOP, device, check=False)
    earlier.undo.close()
    backing = Path("/sys/block", Path(device).name, "loop/backing_file")
    assert backing.read_text().strip() == str(image)
