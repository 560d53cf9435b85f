"""The appliance whose replicator places partitions by their load after seconds, instead of minutes."""

import functools
import sys

from appliance import cli
from appliance.driver import replicator as driver
from appliance.driver.model.balance_policy import BalanceTimes

TIMES = BalanceTimes(look=0.5, part=2.0, parts=2, behind=0.5)

if __name__ == "__main__":
    driver.Replicator = functools.partial(driver.Replicator, times=TIMES)  # type: ignore[assignment, misc]
    sys.exit(cli.main())
