from deploy.render.limits import tunnel_memory


def test_more_connections_get_more_memory_and_those_inside_ssh_more_again() -> None:
    assert tunnel_memory(4096) == 512
    assert tunnel_memory(40_960) > 3 * tunnel_memory(1)
    assert tunnel_memory(4096, ssh_servers=1) == 512 + 128 + 256
    assert tunnel_memory(4096, ssh_servers=2) == 512 + 2 * 128 + 256
