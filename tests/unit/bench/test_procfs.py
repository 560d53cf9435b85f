"""The files of proc."""

from bench.lib.procfs import Memory, Process, family, parse_sizes, parse_stat

STAT = "4385 (java) S 77 4385 4385 0 -1 4194304 153011 35408 98 27 3462 1435 112 42 20 0 108 0 90481 6477623296 134049"
STATUS = "Name:\tpython\nVmHWM:\t   97656 kB\nVmRSS:\t   80000 kB\nThreads:\t3\n"
ROLLUP = "55f0-7ffd ---p 00000000 00:00 0 [rollup]\nRss:   80000 kB\nPss:   67701 kB\nPss_Anon:   60000 kB\n"


def test_processor_time_holds_that_of_buried_children() -> None:
    assert parse_stat(STAT, ticks_a_second=100) == Process(4385, 77, "java", (3462 + 1435 + 112 + 42) / 100)


def test_a_command_may_have_brackets_and_blanks_in_its_name() -> None:
    process = parse_stat(STAT.replace("(java)", "(a) S 1 (b)"), ticks_a_second=100)
    assert (process.command, process.parent) == ("a) S 1 (b", 77)


def test_a_family_holds_grandchildren_and_no_strangers() -> None:
    everybody = [Process(pid, parent, "", 0.0) for pid, parent in [(30, 20), (1, 0), (20, 10), (10, 1), (11, 1)]]
    assert [process.pid for process in family(10, everybody)] == [10, 20, 30]


def test_a_family_whose_root_has_ended_is_empty() -> None:
    assert family(10, [Process(20, 10, "", 0.0)]) == []


def test_sizes_are_read_from_both_files() -> None:
    sizes = parse_sizes(STATUS + ROLLUP)
    assert sizes == {
        "VmHWM": 97656 << 10,
        "VmRSS": 80000 << 10,
        "Rss": 80000 << 10,
        "Pss": 67701 << 10,
        "Pss_Anon": 60000 << 10,
    }


def test_shared_pages_count_in_part_and_what_was_given_back_in_full() -> None:
    assert Memory(resident=80, highest=100, share=60).highest_share == 80
