#!/usr/bin/env python3
"""Storms over the processes of an elastic training, with seeds.

In a storm, every 0.1 to 2 s one of three to six processes joins, is killed by `kill -9` or is stopped for 0.1 to
6 s, or all but one are killed. Then it is quiet, and this must hold: within four times the silence after which a
process counts as lost, each living process trains with all others or has ended; each ends well, or says that the
others continue without it; all that end well have the same model; each batch of each epoch counts once; and the
store is empty. The storms take the rules that allow elastic nodes in turn, and a directory or, if there is a
redis-server, a Redis server as store.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SILENCE = 3.0  # seconds
STORM = 12.0
EPOCHS = 20
BATCHES = 43  # of an epoch: kElasticData in toy.h
STEP = 100  # milliseconds; the longest storm takes fewer epochs than there are
DIES = ['setpriv', '--pdeathsig', 'KILL']  # a process that ends with this one
LEFT_OUT = 'the other nodes continue without this one'

GENERATION = re.compile(r'generation (\d+): this is node (\d+) of (\d+), from iteration (\d+) '
                        r'\(epoch (\d+), after (\d+) batch')
STEPS = re.compile(r'begins batch (\d+) of epoch (\d+) in iteration (\d+)$')


class Broken(Exception):
    """A promise that a storm has broken."""


class Redis:
    """A Redis server without files on disk. Debian's redis-check-rdb is the same program."""

    def __init__(self, program, folder):
        link = folder / 'redis-server'  # the name makes it a server
        link.symlink_to(program)
        self.process = None
        while True:
            self.port = random.SystemRandom().randrange(10000, 32768)
            self.process = subprocess.Popen(
                [*DIES, link, '--port', str(self.port), '--bind', '127.0.0.1', '--save', '', '--dir', folder],
                stdout=subprocess.DEVNULL)
            for _ in range(300):
                if self.process.poll() is not None:
                    break  # another program has the port
                try:
                    self.say('PING')
                    return
                except OSError:
                    time.sleep(0.1)
            self.stop()

    def say(self, words):
        with socket.create_connection(('127.0.0.1', self.port), timeout=5) as connection:
            connection.sendall(words.encode() + b'\r\n')
            return connection.recv(65536).decode()

    def stop(self):
        self.process.kill()
        self.process.wait()


def waits_for_processor():
    """How many seconds longer 20 ms of work took."""
    begin, worked = time.monotonic(), time.thread_time()
    while time.thread_time() - worked < 0.02:
        pass
    late = time.monotonic() - begin
    time.sleep(0.05)
    return late


class Node:
    def __init__(self, name, process):
        self.name, self.process, self.wakes = name, process, None


class Storm:
    """A training, and what happens to its processes."""

    def __init__(self, seed, rule, workers, program, redis, folder):
        self.folder, self.random = pathlib.Path(folder), random.Random(seed)
        self.rule, self.workers, self.program = rule, workers, program
        self.least = self.random.choice([1, 1, 2])
        self.redis = Redis(redis, self.folder) if redis and self.random.random() < 0.5 else None
        self.nodes, self.started, self.events = [], 0, collections.Counter()

    def run(self):
        try:
            for _ in range(3):
                self.join()
            self.rage()
            quiet = time.monotonic()
            settled = self.settle(quiet)
            time.sleep(max(0.0, quiet + SILENCE - time.monotonic()))  # a killed process counts as alive until then
            (self.folder / 'hurry').touch()
            self.check()
            return settled
        finally:
            for node in self.nodes:
                node.process.kill()
                node.process.wait()
            if self.redis:
                self.redis.stop()

    def join(self):
        self.started += 1
        name = f'n{self.started}'
        store = f'redis://127.0.0.1:{self.redis.port}/storm' if self.redis else ''
        words = [*DIES, self.program, self.folder, name, self.rule, self.workers, self.least, EPOCHS, STEP, 'well', 0,
                 store]
        with open(self.folder / f'output-{name}', 'w') as output:
            process = subprocess.Popen([str(word) for word in words], stdout=output, stderr=output,
                                       env={**os.environ, 'MUSTER_TEST_SILENCE': str(int(1000 * SILENCE))})
        self.nodes.append(Node(name, process))

    def kill(self, node):
        node.process.kill()
        node.process.wait()
        self.nodes.remove(node)

    def rage(self):
        end = time.monotonic() + STORM
        while time.monotonic() < end:
            self.pause(self.random.uniform(0.1, 2))
            for node in [node for node in self.nodes if node.process.poll() is not None]:
                self.require_left_out(node)
                self.nodes.remove(node)
            event = self.random.choice('join join join join kill kill kill stop stop most'.split())
            if len(self.nodes) < 3 or (event == 'join' and len(self.nodes) == 6):
                event = 'join' if len(self.nodes) < 6 else 'kill'
            self.events[event] += 1
            if event == 'join':
                self.join()
            elif event == 'kill':
                self.kill(self.random.choice(self.nodes))
            elif event == 'most':
                for node in self.random.sample(self.nodes, len(self.nodes) - 1):
                    self.kill(node)
            else:
                node = self.random.choice(self.nodes)
                if not node.wakes:
                    node.process.send_signal(signal.SIGSTOP)
                    node.wakes = time.monotonic() + self.random.uniform(0.1, 6)
        while len(self.nodes) < self.least:
            self.join()
        while any(node.wakes for node in self.nodes):
            self.pause(0.05)

    def pause(self, seconds):
        """Meanwhile stopped processes continue."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for node in self.nodes:
                if node.wakes and time.monotonic() >= node.wakes:
                    node.process.send_signal(signal.SIGCONT)
                    node.wakes = None
            time.sleep(0.01)

    def settle(self, quiet):
        """Waits until all living processes train together. Returns how long that took. A machine that lets a process
        wait for the processor is not quiet."""
        while True:
            if waits_for_processor() > SILENCE / 10:
                quiet = time.monotonic()
            living = [node for node in self.nodes if node.process.poll() is None]
            if len(living) < self.least and not any(node.process.poll() == 0 for node in self.nodes):
                self.join()  # others were left out when they woke up, and have ended
                quiet = time.monotonic()
                continue
            last = [self.generations(node.name)[-1:] for node in living]
            if all(last) and len({(one[0]['number'], one[0]['nodes']) for one in last}) <= 1:
                if not last or last[0][0]['nodes'] == len(living):
                    return time.monotonic() - quiet
            if time.monotonic() > quiet + 4 * SILENCE:
                raise Broken(f'{4 * SILENCE} s after the storm, ' + '; '.join(
                    f'{node.name} is in {one[0]["line"] if one else "no generation"}'
                    for node, one in zip(living, last)))

    def wait(self):
        """Waits for all ends, as long as a process trains."""
        trained, since = 0, time.monotonic()
        while any(node.process.poll() is None for node in self.nodes):
            now = sum(len(self.left('log', node.name)) for node in self.nodes)
            if now > trained:
                trained, since = now, time.monotonic()
            if time.monotonic() > since + 20 * SILENCE:
                raise Broken('the training neither goes on nor ends')
            time.sleep(0.2)

    def check(self):
        self.wait()
        models = {}
        for node in self.nodes:
            if node.process.returncode == 0:
                models[node.name] = self.left('bits', node.name)
            else:
                self.require_left_out(node)
        if not models:
            raise Broken('no process has ended well')
        if len(set(models.values())) != 1:
            raise Broken(f'the models of {", ".join(models)} differ')
        self.require_batches()
        if self.redis:
            keys = self.redis.say('KEYS *').split()
            if keys != ['*0']:
                raise Broken(f'the store has {keys}')
        elif os.listdir(self.folder / 'store'):
            raise Broken(f'the store has {os.listdir(self.folder / "store")}')

    def require_left_out(self, node):
        problem = self.left('problem', node.name).decode()
        if node.process.returncode != 3 or LEFT_OUT not in problem:
            raise Broken(f'{node.name} has ended with status {node.process.returncode}: {problem}')

    def left(self, kind, name):
        path = self.folder / f'{kind}-{name}'
        return path.read_bytes() if path.exists() else b''

    def generations(self, name):
        """The generations that a process has been in, each with the batches that it began."""
        found = []
        for line in self.left('log', name).decode().splitlines():
            if begin := GENERATION.search(line):
                number, node, nodes, *start = map(int, begin.groups())
                found.append({'time': float(line.split()[0]), 'line': begin[0], 'number': number, 'node': node,
                              'nodes': nodes, 'start': tuple(start), 'steps': []})
            elif found and (step := STEPS.search(line)):
                batch, epoch, iteration = map(int, step.groups())
                found[-1]['steps'].append((iteration, epoch, batch))
        return found

    def history(self):
        """The generations of the training that has ended, each with those of its processes. A training begins again
        if no living process has trained."""
        parts = [part for n in range(self.started) for part in self.generations(f'n{n + 1}')]
        history = {}
        for part in sorted(parts, key=lambda part: part['time']):
            same = history.get(part['number'], [])
            belongs = all(one['start'] == part['start'] and one['node'] != part['node'] for one in same)
            if part['start'] == (0, 1, 0) and not (same and belongs):
                history = {}
            history.setdefault(part['number'], []).append(part)
        return [history[number] for number in sorted(history)]

    def require_batches(self):
        history = self.history()
        ends = [generation[0]['start'][0] for generation in history[1:]] + [sys.maxsize]
        count = collections.Counter((epoch, batch) for generation, end in zip(history, ends) for part in generation
                                    for iteration, epoch, batch in part['steps'] if iteration < end)
        wrong = {one: times for one, times in count.items() if times != 1}
        if wrong or len(count) != EPOCHS * BATCHES:
            raise Broken(f'{len(count)} of {EPOCHS * BATCHES} batches count; not once: {wrong}')


def tell(seed, rule, workers, options):
    """Runs a storm. Returns whether it has kept all promises."""
    folder = tempfile.mkdtemp(prefix=f'storm-{seed}-')
    storm = Storm(seed, rule, workers, options.program, options.redis, folder)
    what = f'storm {seed}: {rule}, {"Redis" if storm.redis else "directory"}, at least {storm.least}'
    try:
        settled = storm.run()
    except Broken as problem:
        print(f'{what}: FAILED: {problem}\n  all is in {folder}', flush=True)
        return False
    events = ', '.join(f'{count} {event}' for event, count in sorted(storm.events.items()))
    print(f'{what}: {events}; all trained or had ended {settled:.1f} s after it', flush=True)
    shutil.rmtree(folder)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('program', help='path of elastic_node')
    parser.add_argument('--storms', type=int, default=100)
    parser.add_argument('--seed', type=int, default=1, help='of the first storm')
    parser.add_argument('--at-once', type=int, default=1, help='storms at a time')
    parser.add_argument('--redis', default=shutil.which('redis-server') or shutil.which('redis-check-rdb'))
    options = parser.parse_args()
    rules = [line.split('\t') for line in
             subprocess.run([options.program, 'rules'], check=True, capture_output=True, text=True).stdout.splitlines()]
    if not options.redis:
        print('there is no redis-server: all storms take a directory')
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        kept = list(pool.map(lambda seed: tell(seed, *rules[seed % len(rules)], options),
                             range(options.seed, options.seed + options.storms)))
    print(f'{sum(kept)} of {len(kept)} storms have kept all promises')
    sys.exit(0 if all(kept) else 1)


if __name__ == '__main__':
    main()
