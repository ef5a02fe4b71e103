"""Our client against a host of ConnectOnion's package for Python, the newest version."""
# Needs: onion.

from pathlib import Path
from tempfile import TemporaryDirectory

from clientchecks import CHECKS, site
from harness import main, onions

async def body(checks):
    with TemporaryDirectory() as folder:
        async with site(onions()[-1], Path(folder)) as newest:
            await checks.each(CHECKS, newest)

main(body)
