"""The command line of the demo."""

import pytest

from demo.__main__ import main


@pytest.mark.parametrize(
    "arguments",
    [
        ["--records", "999"],
        ["--records", "many"],
        ["--records", "-5"],
        ["--fast"],
        ["--global", "--keep"],
        ["--global", "--records", "5000"],
    ],
)
def test_bad_usage_is_told_with_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: demo ")
