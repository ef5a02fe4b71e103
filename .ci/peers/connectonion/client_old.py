"""Our client against the old host of ConnectOnion that the specification tells of, and what takes long against both."""
# Needs: onion-old, onion.

from pathlib import Path
from tempfile import TemporaryDirectory

from clientchecks import CHECKS, a_run_that_a_killed_host_forgets_is_told, a_silent_line_stays_open, site
from harness import main, onions

async def body(checks):
    old_onion, new_onion = onions()
    with TemporaryDirectory() as folder:
        async with (
            site(old_onion, Path(folder, "doomed")) as doomed,
            site(old_onion, Path(folder, "old")) as old,
            site(new_onion, Path(folder, "newest")) as newest,
        ):
            checks.beside(a_run_that_a_killed_host_forgets_is_told, doomed)
            for one in (newest, old):
                await checks.run(CHECKS[0], one)
                checks.beside(a_silent_line_stays_open, one)
            await checks.each(CHECKS[1:], old)
            await checks.finished()
            await checks.run(a_run_that_a_killed_host_forgets_is_told, newest)

main(body)
