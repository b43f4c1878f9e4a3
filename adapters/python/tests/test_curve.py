"""CURVE by the files of `svmstream curve`: who is let in, and which files are refused."""
import os
import subprocess

import pytest

from process import Process

from svmstream import AsyncStream, Stream, errors


@pytest.fixture(scope="module")
def keys(program, tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    for name in ("server", "me", "other", "feeder"):
        subprocess.run([program, "curve", "-q", "new", name + ".key"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
    for name, role in (("me", "ingest,subscribe,control"), ("feeder", "ingest:another,control")):
        subprocess.run([program, "curve", "-q", "allow", name + ".key.pub", "--name", name,
                        "--role", role], cwd=folder,
                       check=True, stdout=subprocess.DEVNULL)
    return folder


@pytest.fixture(scope="module")
def run(program, keys):
    with Process(program, folder=keys, curve="server.key",
                 **{"curve.allow": "svmstream.allow", "method": "alsvm"}) as p:
        yield p


def test_let_in(run, keys):
    server = (keys / "server.key.pub").read_text().split('"')[1]
    for form in (server, keys / "server.key.pub", str(keys / "server.key")):
        with Stream(run.ctl, curve=keys / "me.key", curve_server=form) as s:
            assert s.send([1.0], 0).number == 0
            with s.scores(timeout=20) as scores:
                s.send([2.0], 1)
                assert next(scores).y == 1
            assert s.status()["curve"] is True


def test_async(run, keys):
    import asyncio

    async def main():
        async with AsyncStream(run.ctl, curve=keys / "me.key",
                               curve_server=keys / "server.key.pub") as s:
            return await s.send([1.0], 0)

    assert asyncio.run(main()).number == 0


@pytest.mark.parametrize("curve,server",
                         [("other.key", "server.key.pub"), ("me.key", "other.key.pub"),
                          (None, None)])
def test_not_let_in(run, keys, curve, server):
    keys_of = {} if curve is None else {"curve": keys / curve, "curve_server": keys / server}
    with pytest.raises((errors.NotAllowedError, errors.TimedOutError)) as caught:
        Stream(run.ctl, timeout=1.5, **keys_of)
    assert run.ctl in str(caught.value)
    assert ("allow file" if curve else "CURVE") in str(caught.value)


def test_a_name_of_another(run, keys):
    """The key may feed, but not this stream: what the process says is raised."""
    with pytest.raises((errors.NotAllowedError, errors.TimedOutError)):
        s = Stream(run.ctl, timeout=2, curve=keys / "feeder.key",
                   curve_server=keys / "server.key.pub")
        try:
            s.send([1.0], 0)
        finally:
            s.close(wait=False)


def test_files(keys, tmp_path):
    me, server = keys / "me.key", keys / "server.key.pub"
    text = me.read_text()

    def refused(match, curve=me, curve_server=server, kind=errors.SvmstreamError):
        with pytest.raises(kind, match=match):
            Stream("tcp://127.0.0.1:9", curve=curve, curve_server=curve_server, timeout=0.2)

    def made(text, mode=0o600):
        path = tmp_path / ("key%d" % len(os.listdir(tmp_path)))
        path.write_text(text)
        path.chmod(mode)
        return path

    refused("other users can read", made(text, 0o644))
    refused("other users can write", curve_server=made(server.read_text(), 0o666))
    refused("this is the public key", keys / "me.key.pub")
    refused("No such file", tmp_path / "none")
    refused("not a key file", made("nothing"))
    refused("not a key file", made(text + text))
    refused("does not match",
            made(text.replace(text.split('"')[1], (keys / "other.key").read_text().split('"')[1])))
    refused("not a regular file", tmp_path)
    refused("too large", made(text + "#" * 5000))
    refused("printed in the manual", curve_server="rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7")
    refused("neither a public key", curve_server="short")
    refused("curve_server", curve_server=None, kind=errors.SettingError)
    refused("curve is off", curve=None, kind=errors.SettingError)
