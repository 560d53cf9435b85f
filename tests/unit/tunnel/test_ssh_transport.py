from hypothesis import given
from hypothesis import strategies as st

from appliance.tunnel.ssh.transport import WINDOW_MAX, WINDOW_MIN, WINDOWS_TOTAL, Windows


def test_the_first_channel_gets_the_most_and_the_many_thousandth_still_enough_to_go_on() -> None:
    windows = Windows()
    granted = [windows.grant() for _ in range(5000)]
    assert granted[0] == WINDOW_MAX
    assert granted[-1] == WINDOW_MIN
    assert granted == sorted(granted, reverse=True)


def test_eight_channels_have_the_two_mebibytes_that_a_line_of_100_ms_wants_and_more() -> None:
    windows = Windows()
    assert min(windows.grant() for _ in range(8)) > 4 * 2**20


@given(st.lists(st.booleans(), max_size=300))
def test_all_windows_stay_within_the_total_but_for_the_least_of_each(steps: list[bool]) -> None:
    windows, open_channels = Windows(), []
    for opens in steps:
        if opens or not open_channels:
            open_channels.append(windows.grant())
        else:
            windows.release(open_channels.pop(0))
        assert windows.granted == sum(open_channels) <= WINDOWS_TOTAL + WINDOW_MIN * len(open_channels)
