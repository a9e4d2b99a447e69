"""howdah web: prints the link, serves, refuses unsafe options, and stops on a signal."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.cli.support import Cli, environment, invoke, started

NOWHERE = "postgresql://nobody@127.0.0.1:1/none"


class Served:
    """A dashboard as a process, and its output."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.printed: list[str] = []
        self.link = self.read_until(r"http://\S+")
        self.url = re.sub(r"/(link\?.*)?$", "", self.link)

    def read_until(self, pattern: str) -> str:
        """Read the output up to a line that matches; returns the match."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.printed.append(line)
            if match := re.search(pattern, line):
                return match[0]
        pytest.fail(f"it ended and never printed {pattern}:\n{''.join(self.printed)}")


@contextmanager
def web(*options: object, dsn: str) -> Generator[Served]:
    with started("web", "--port", 0, *options, HOWDAH_DSN=dsn) as process:
        yield Served(process)


@contextmanager
def logged_in(served: Served) -> Generator[httpx.Client]:
    """Log in with the link that was printed."""
    with httpx.Client(base_url=served.url, follow_redirects=True) as client:
        assert client.get(served.link).status_code == 200
        yield client


def csrf_token_of(client: httpx.Client) -> str:
    match = re.search(r'name="howdah-csrf-token" content="(\w+)"', client.get("/").text)
    assert match is not None
    return match[1]


def test_the_link_that_it_prints_opens_it_once(cli: Cli) -> None:
    with web(dsn=cli.dsn) as served:
        with logged_in(served) as client:
            assert "Overview" in client.get("/").text
        with httpx.Client() as another:
            assert another.get(served.link).status_code == 410
            assert another.get(served.url).status_code == 401


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_at_once_also_with_open_streams(cli: Cli, number: signal.Signals) -> None:
    with web(dsn=cli.dsn) as served, logged_in(served) as client:
        with client.stream("GET", "/live", params={"page": "/"}) as stream:
            assert next(stream.iter_lines()).startswith("event: draw")
            served.process.send_signal(number)
            assert served.process.wait(8) == 0
        assert served.process.stderr is not None
        log = served.process.stderr.read()
        assert "Traceback" not in log
        assert "ERROR" not in log


def test_a_port_that_is_taken_is_one_line_of_error(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        result = cli("web", "--port", port)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert f"cannot listen at 127.0.0.1:{port}" in line
    assert "Choose another with --port" in line


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "dashboard.example"])
def test_it_refuses_other_hosts_than_localhost_without_authentication(host: str) -> None:
    result = invoke("web", "--host", host, "--dsn", NOWHERE)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert f"other machines can reach {host}: set a password" in line
    assert "HOWDAH_WEB_PASSWORD" in line


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--trust-header", "X-User"), "name the addresses of the proxy"),
        (("--trust-header", "X-User", "--trust-proxy", "the-proxy"), "an address such as"),
        (("--trust-proxy", "the-proxy"), "an address such as"),
        (("--prefix", "/a b"), "is not a path"),
        (("--port", "70000"), "70000"),
    ],
)
def test_options_that_do_not_fit_are_an_error(options: tuple[str, ...], expected: str) -> None:
    result = invoke("web", *options, "--dsn", NOWHERE)
    assert (result.exit_code, expected in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize("password", ["", "short"])
def test_too_short_a_password_keeps_it_from_starting(
    password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWDAH_WEB_PASSWORD", password)
    result = invoke("web", "--host", "0.0.0.0", "--dsn", NOWHERE)
    assert result.exit_code == 2
    assert "at least 8 characters" in result.stderr


def test_a_password_from_a_file_opens_it_anywhere_and_is_in_no_command_line(
    cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text("correct horse\n")
    with web("--host", "0.0.0.0", "--password-file", file, dsn=cli.dsn) as served:
        assert served.link.endswith("/")
        assert httpx.get(served.url + "/", auth=("admin", "correct horse")).status_code == 200
        assert httpx.get(served.url + "/", auth=("admin", "wrong horse")).status_code == 303
        arguments = Path(f"/proc/{served.process.pid}/cmdline").read_bytes()
        assert b"horse" not in arguments
        assert "horse" not in "".join(served.printed)
    assert "--password " not in invoke("web", "--help").stdout


def test_a_header_is_trusted_from_the_named_proxy_only(cli: Cli) -> None:
    def status_behind(proxy: str) -> int:
        options = ("--trust-header", "X-User", "--trust-proxy", proxy)
        with web(*options, dsn=cli.dsn) as served:
            return httpx.get(served.url + "/", headers={"X-User": "ada"}).status_code

    assert (status_behind("127.0.0.1"), status_behind("10.0.0.7")) == (200, 401)


def test_an_unknown_host_name_is_refused_unless_it_is_allowed(cli: Cli) -> None:
    with web("--allow-host", "queue.example", dsn=cli.dsn) as served, logged_in(served) as client:
        port = served.url.rpartition(":")[2]

        def status_for(host: str) -> int:
            return client.get("/", headers={"Host": f"{host}:{port}"}).status_code

        assert [status_for(host) for host in ("127.0.0.1", "localhost", "queue.example")] == [
            200
        ] * 3
        assert [status_for(host) for host in ("evil.example", "127.0.0.1.evil.example")] == [
            400
        ] * 2


def test_every_action_leaves_a_line_in_the_log(cli: Cli) -> None:
    with web("--log-json", dsn=cli.dsn) as served:
        with logged_in(served) as client:
            form = {"csrf_token": csrf_token_of(client), "worker": "no\nbody"}
            client.post("/workers/drain", data=form).raise_for_status()
        line = json.loads(served.read_until(r".*web\.action.*"))
    assert (line["level"], line["logger"]) == ("info", "howdah.web")
    assert line["message"] == r'web.action who="local" did=drain on="no\nbody" heard="False"'


@pytest.mark.parametrize("strips", [True, False])
def test_below_a_prefix_links_and_cookies_stay_there(cli: Cli, strips: bool) -> None:
    with web("--prefix", "queue/", dsn=cli.dsn) as served:
        assert "/queue/link?token=" in served.link
        link = served.link.replace("/queue/link", "/link") if strips else served.link
        first = httpx.get(link)
        assert first.headers["location"] == "/queue/"
        assert "Path=/queue;" in first.headers["set-cookie"]
        cookies = {cookie.name: cookie.value or "" for cookie in first.cookies.jar}
        root = re.sub(r"/queue$", "", served.url)
        page = httpx.get(f"{root}{'' if strips else '/queue'}/", cookies=cookies)
        assert page.status_code == 200
        assert 'href="/queue/jobs"' in page.text
        static = "/static/howdah.css"
        assert httpx.get(f"{root}{'' if strips else '/queue'}{static}").status_code == 200


def test_without_its_extra_it_says_in_one_line_what_to_install() -> None:
    code = (
        "import sys; sys.modules['starlette'] = None; sys.argv = ['howdah', 'web']; "
        "from howdah.cli.commands import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: the dashboard needs more packages: pip install 'howdah[web]'\n"


def test_an_unreachable_database_is_reported_on_the_page_and_does_not_end_it() -> None:
    with web(dsn=NOWHERE) as served, httpx.Client(follow_redirects=True) as client:
        answer = client.get(served.link)
    assert answer.status_code == 503
    assert "The database does not answer" in answer.text
    assert "Traceback" not in answer.text
