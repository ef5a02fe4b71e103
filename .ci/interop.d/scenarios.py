"""Foreign clients and a foreign provider against the gateway. The checks stand in the modules by
topic; here they are run."""

import asyncio
import signal

from answers import (
    FOR_EACH_PROVIDER, a_provider_that_is_not_there, a_silent_provider_is_given_up, modules_may_fail,
    the_key_of_the_environment_goes_first, without_a_key_nothing_is_asked,
)
from common import Checks, title
from exoclaw import PROVIDERS, TOKEN, agent, echo, gateway
from provider import Provider
from sessions import SESSIONS, SESSIONS_ALONE
from settings import SETTINGS, an_end_does_not_wait_for_ever, the_last_answers_are_finished
from wire import PLAIN, WITH_TOKEN, nobody_waits_for_a_token_for_ever


async def main():
    checks = Checks()
    # These mostly wait; the others run meanwhile.
    checks.beside(title(an_end_does_not_wait_for_ever), an_end_does_not_wait_for_ever(), 60)
    for kind in PROVIDERS:
        for check in (a_silent_provider_is_given_up, a_provider_that_is_not_there):
            checks.beside(f"{kind}: {title(check)}", check(kind), 90)
    async with Provider() as provider:
        tables = {"agent": agent(), "plugins": echo()}
        async with gateway(provider, config=tables) as running:
            for check in PLAIN + SESSIONS:
                await checks.run(title(check), check(running, provider))
        async with gateway(provider, "--token", TOKEN) as running:
            # Takes as long as the gateway is patient.
            waiting = nobody_waits_for_a_token_for_ever(running)
            waiting = checks.beside(title(nobody_waits_for_a_token_for_ever), waiting)
            for check in WITH_TOKEN:
                await checks.run(title(check), check(running))
            await waiting
    for kind in PROVIDERS:
        async with Provider() as provider:
            tables = {"agent": agent(kind), "plugins": echo()}
            async with gateway(provider, config=tables) as running:
                for check in FOR_EACH_PROVIDER:
                    await checks.run(f"{kind}: {title(check)}", check(kind, running, provider))
        if kind in ("anthropic", "openai"):
            for check in (without_a_key_nothing_is_asked, the_key_of_the_environment_goes_first):
                await checks.run(f"{kind}: {title(check)}", check(kind))
    for check in [modules_may_fail, *SESSIONS_ALONE, *SETTINGS]:
        await checks.run(title(check), check())
    for end in (signal.SIGINT, signal.SIGTERM):
        name = f"{title(the_last_answers_are_finished)} after {end.name}"
        await checks.run(name, the_last_answers_are_finished(end))
    await checks.others()
    checks.finish()


asyncio.run(main())
