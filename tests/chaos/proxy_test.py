# SPDX-License-Identifier: Apache-2.0
"""What each trouble of a link does to a connection."""

import contextlib
import socket
import subprocess
import threading

import links as links_module
import pytest


@pytest.fixture
def echo():
    """The port of a server that sends back what it gets."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    def answer(connection):
        with connection, contextlib.suppress(ConnectionError):
            while data := connection.recv(100):
                connection.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


@pytest.fixture
def links(echo):
    running = links_module.Links(subprocess.DEVNULL)
    running.add("l", echo)
    yield running
    running.close()


@pytest.fixture
def connection(links):
    made = socket.create_connection(("127.0.0.1", links.ports["l"]), timeout=10)
    yield made
    made.close()


def ask_anew(links):
    """The answer to a new connection; empty where it ends, be it before the client knows that it is one."""
    try:
        with socket.create_connection(("127.0.0.1", links.ports["l"]), timeout=10) as made:
            return ask(made)
    except ConnectionError:
        return b""


def ask(connection, text=b"x"):
    """The answer; empty where the connection has ended."""
    try:
        connection.sendall(text)
        return connection.recv(100)
    except ConnectionError:
        return b""


def test_a_link_brings_bytes_both_ways(connection):
    assert ask(connection) == b"x"


def test_refused_connections_end_and_new_ones_too_until_it_is_mended(links, connection):
    assert ask(connection) == b"x"
    links.set("l", "refuse")
    assert ask(connection) == b""
    assert ask_anew(links) == b""
    links.mend()
    assert ask_anew(links) == b"x"


def test_a_frozen_link_brings_everything_afterwards(links, connection):
    links.set("l", "freeze")
    connection.sendall(b"late")
    connection.settimeout(0.2)
    with pytest.raises(TimeoutError):
        connection.recv(100)
    links.mend()
    connection.settimeout(10)
    assert connection.recv(100) == b"late"


def test_a_mute_link_swallows_the_answer_and_ends_the_connection(links, connection):
    assert ask(connection) == b"x"
    links.set("l", "mute")
    connection.sendall(b"told")
    connection.settimeout(0.2)
    with pytest.raises(TimeoutError):
        connection.recv(100)
    links.mend()
    connection.settimeout(10)
    assert ask(connection) == b""


def test_a_link_that_loses_all_ends_at_the_first_bytes(links, connection):
    links.set("l", "lose", 1.0)
    assert ask(connection) == b""


def test_a_slow_link_brings_all(links, connection):
    links.set("l", "delay", 0.05)
    assert ask(connection) == b"x"
