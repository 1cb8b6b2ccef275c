# SPDX-License-Identifier: Apache-2.0
"""All parts over real processes: PostgreSQL, S3, three coordinators, gateway with a fake
model, policy service and one real worker, with a link that can be troubled between each two."""

import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import urllib.request

import contract
import disk
import fake_llm
import links as links_module
import parts
import processes
import stack as stacks

START_SECONDS = 60
FAKETIME = pathlib.Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
COORDINATORS = ("c0", "c1", "c2")
# A takeover and the loss of a worker are met often, and are longer than a short stop.
TAKEOVER_MS, GRACE_MS = 1500, 3000
S3_KEY, S3_SECRET = "chaos-key", "chaos-secret"
TOKENS_OF_REPLY = 105


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Model(fake_llm.FakeLlm):
    """Answers each request with another program for the simulated problem."""

    def __init__(self):
        self.served = 0
        super().__init__("")

    @property
    def reply(self):
        self.served += 1
        return (
            f"```c\n//@ mtmc 1 opencl\n//@ input x f32[64,32]\n//@ output y f32[64,32]\n"
            f"//@ launch run grid=32 block=64 args=(x, y)\n"
            f"// attempt {self.served}\n"
            "__kernel void run(__global const float* x, __global float* y) {\n"
            "  const size_t i = get_global_id(0);\n  y[i] = tanh(x[i]) * x[i];\n}\n```"
        )

    @reply.setter
    def reply(self, _):
        pass


class World:
    """A context manager. `skipped` says which faults cannot be here, and why."""

    def __init__(self, folder, has_worker=True, coordinators=COORDINATORS):
        self.folder = pathlib.Path(folder).resolve()
        self.names = coordinators
        self._has_worker = has_worker
        self.parts = {}
        self.disks = {}
        self.ports = {}
        self.skipped = {}

    def __enter__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self._log = open(self.folder / "tools.log", "ab")
        self.links = links_module.Links(self._log)
        self.model = Model()
        self.model.__enter__()
        self._keeper = None
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self._keeper:
            self._keeper.close()
        for name in ("worker", *self.names, "gateway", "policy", "s3"):
            if name in self.parts:
                self.parts[name].take_down(signal.SIGKILL if name == "s3" else signal.SIGTERM)
        if "postgres" in self.parts:
            self.parts["postgres"].take_down(signal.SIGINT)
        self.model.__exit__()
        self.links.close()
        for one in self.disks.values():
            one.close()
        self._log.close()

    # Parts.

    def _add(self, name, command, variables=None, user=()):
        part = parts.Part(name, command, self.folder / f"{name}.log", variables or dict(os.environ), user)
        self.parts[name] = part
        part.start()
        return part

    def _disk(self, name, megabytes):
        made = disk.Disk(self.folder / f"disk-{name}", megabytes)
        self.disks[name] = made
        if made.reason:
            self.skipped["disk full"] = made.reason
        return made.folder

    def _link(self, name, upstream):
        return f"127.0.0.1:{self.links.add(name, upstream)}"

    def _daemon(self, name, program, *flags, port=None, **changes):
        self.ports[name], self.ports[f"{name}-http"] = port or free_port(), free_port()
        home = self.folder / f"home-{name}"
        home.mkdir(exist_ok=True)
        command = [stacks.BIN / program, "--http", f"127.0.0.1:{self.ports[f'{name}-http']}", *flags]
        if program != "mtmc-worker":
            command += ["--listen", f"127.0.0.1:{self.ports[name]}"]
        return self._add(name, command, stacks.environment(home, **changes))

    def _start(self):
        self._start_postgres()
        self._start_s3()
        self._daemon("policy", "mtmc-policyd")
        model = self._link("gateway-llm", int(self.model.base_url.split(":")[2].split("/")[0]))
        self._daemon("gateway", "mtmc-gateway", "--base-url", f"http://{model}/v1", "--model", "fake",
                     "--first-byte-timeout", 5, "--total-timeout", 10, OPENAI_API_KEY="none")  # fmt: skip
        for name in self.names:
            self._start_coordinator(name)
        if self._has_worker:
            addresses = [self._link(f"worker-{name}", self.ports[name]) for name in self.names]
            self._daemon("worker", "mtmc-worker", "--coordinator", "ipv4:" + ",".join(addresses),
                         "--scratch", self._disk("scratch", 256), "--name", "real", OMP_NUM_THREADS="1")  # fmt: skip
        for name in self.parts:
            if f"{name}-http" in self.ports:
                processes.eventually(lambda name=name: self.is_ready(name), START_SECONDS, f"{name} is ready")
        self._keeper = parts.Keeper(list(self.parts.values()))

    def _start_coordinator(self, name):
        variables = {}
        if FAKETIME.exists():
            self._clock(name).write_text("+0\n")
            variables = {"LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(self._clock(name)),
                         "FAKETIME_CACHE_DURATION": "1", "DONT_FAKE_MONOTONIC": "1"}  # fmt: skip
        else:
            self.skipped["clock jump"] = "libfaketime is not installed; run scripts/setup"
        # The port is needed before the process, for the link at which others reach it.
        store = self._link(f"{name}-postgres", self.ports["postgres"]).split(":")
        s3 = self._link(f"{name}-s3", self.ports["s3"])
        gateway = self._link(f"{name}-gateway", self.ports["gateway"])
        policy = self._link(f"{name}-policy", self.ports["policy"])
        port = free_port()
        advertise = self._link(f"peer-{name}", port)
        self._daemon(
            name, "mtmc-coordinator", "--store", f"host={store[0]} port={store[1]} user=mtmc dbname=postgres",
            "--artifacts", "s3://artifacts/mtmc", "--advertise", advertise, "--takeover-after-ms", TAKEOVER_MS,
            "--lease-grace-ms", GRACE_MS, "--gateway", gateway, "--policy", policy,
            AWS_ENDPOINT_URL_S3=f"http://{s3}", AWS_ACCESS_KEY_ID=S3_KEY, AWS_SECRET_ACCESS_KEY=S3_SECRET,
            AWS_REGION="us-east-1", port=port, **variables,
        )  # fmt: skip
        self._link(f"client-{name}", port)

    def _start_postgres(self):
        tools = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
        if not tools:
            raise RuntimeError("PostgreSQL is not installed; run scripts/setup")
        self._tools = tools[-1]
        folder = self._disk("postgres", 384)
        self._user = []
        if os.getuid() == 0:
            # Root may not serve, and `nobody` must get to the folder.
            for above in (self.folder, *self.folder.parents):
                if not os.stat(above).st_mode & 1:
                    above.chmod(os.stat(above).st_mode | 1)
            shutil.chown(folder, "nobody")
            self._user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        data = folder / "data"
        subprocess.run([*self._user, self._tools / "initdb", "-D", data, "-A", "trust", "-U", "mtmc", "--no-sync",
                        "-E", "UTF8", "--locale=C.UTF-8", "--wal-segsize=4"],
                       check=True, cwd="/", stdout=self._log, stderr=self._log)  # fmt: skip
        port = self.ports["postgres"] = free_port()
        self._add("postgres", [self._tools / "postgres", "-D", data, "-k", "", "-p", port, "-c", "fsync=off",
                               "-c", "listen_addresses=127.0.0.1", "-c", "max_wal_size=64MB",
                               "-c", "min_wal_size=16MB"], user=self._user)  # fmt: skip
        processes.eventually(self.is_postgres_there, START_SECONDS, "PostgreSQL serves")

    def is_postgres_there(self):
        return subprocess.run([self._tools / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.ports["postgres"])],
                              check=False).returncode == 0  # fmt: skip

    def sql(self, query):
        """Rows of a query, each a list of texts."""
        done = subprocess.run(
            [self._tools / "psql", "-h", "127.0.0.1", "-p", str(self.ports["postgres"]), "-U", "mtmc", "-d", "postgres",
             "-AtF", "\t", "-c", query], capture_output=True, text=True, check=True)  # fmt: skip
        return [line.split("\t") for line in done.stdout.splitlines()]

    def _start_s3(self):
        places = (os.environ.get("MTMC_VERSITYGW"), pathlib.Path.home() / "go/bin/versitygw",
                  shutil.which("versitygw"))  # fmt: skip
        program = next((place for place in places if place and os.path.exists(place)), None)
        if program is None:
            raise RuntimeError("versitygw is not installed; run scripts/setup on a host with Go")
        root = self._disk("s3", 64)
        (root / "artifacts").mkdir(parents=True, exist_ok=True)
        port = self.ports["s3"] = free_port()
        self._add("s3", [program, "--port", f"127.0.0.1:{port}", "posix", root],
                  {**os.environ, "ROOT_ACCESS_KEY": S3_KEY, "ROOT_SECRET_KEY": S3_SECRET})  # fmt: skip

        def answers():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        processes.eventually(answers, START_SECONDS, "S3 serves")

    # Questions and orders.

    def _clock(self, name):
        return self.folder / f"clock-{name}"

    def set_clock(self, name, seconds):
        """Sets a coordinator's clock so far off, within a second."""
        self._clock(name).write_text(f"{seconds:+d}\n")

    def is_ready(self, name):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[f'{name}-http']}/readyz", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def endpoint(self, name):
        """Where clients reach a coordinator."""
        return f"127.0.0.1:{self.links.ports[f'client-{name}']}"

    def mend(self):
        """Ends every trouble that is still under way."""
        self.links.mend()
        for one in self.disks.values():
            one.free()
        for part in self.parts.values():
            part.send(signal.SIGCONT)
            part.start()

    def exits(self):
        """How parts ended by themselves."""
        return {name: part.exits for name, part in self.parts.items() if part.exits}


class Client(contract.Client):
    """Calls of one coordinator through its link, on a connection of its own."""

    def __init__(self, endpoint):
        super().__init__(stacks.CONTRACT, endpoint, options=[("grpc.use_local_subchannel_pool", 1)])


class Clients:
    """Clients of all coordinators, of which calls draw one. For one thread."""

    def __init__(self, world, seed):
        self._clients = [Client(world.endpoint(name)) for name in world.names]
        self._random = random.Random(seed)
        self.one = self._clients[0]
        self.move()

    def move(self):
        """To any coordinator, perhaps the same."""
        self.one = self._random.choice(self._clients)
        return self.one

    def close(self):
        for client in self._clients:
            client.close()
