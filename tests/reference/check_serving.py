#!/usr/bin/python3
"""Runs the cases of a folder for serving with orrery: check_serving.py FOLDER [--kind KIND] [--ranks 1,2].

Every cases.json or cases.json.gz below the folder is a list of cases {"id", "kind", "inputs", "expected", "tolerance"}.
Each case becomes a CONFIG.yaml, and its results are those of `orrery run`. Prints one line for each case, and then
"N passed, M failed".
"""
import argparse
import glob
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile

import h5py

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PS_MS, PS_US = 10**9, 10**6
VLLM_GRAPHS = [1, 2, 4] + list(range(8, 257, 8)) + list(range(272, 513, 16))


class Failure(Exception):
    """A run of orrery that failed."""


class Runner:
    """Runs configurations in a folder of its own."""

    def __init__(self, program, ranks):
        self.program, self.ranks = program, ranks
        self.folder = tempfile.mkdtemp(prefix='serving-')
        self.base = ''              # folder of the cases at hand, for names of files in them

    def path(self, name):
        """Returns the name of a file beside the cases."""
        return os.path.join(self.base, name)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, 'w') as file:
            file.write(text)
        return path

    def run(self, serving, ranks=1):
        """Returns the open results of a configuration, a mapping of what stands below `serving`."""
        config = self.write('config.yaml', json.dumps({'serving': serving}))
        output = os.path.join(self.folder, 'results.h5')
        command = [self.program, 'run', config, '--output', output, '--force', '--quiet']
        if ranks > 1:
            command = [os.path.join(ROOT, 'scripts', 'mpirun.sh'), str(ranks)] + command
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200)
        if done.returncode != 0:
            raise Failure(f'exit code {done.returncode}: {done.stderr.strip()[-400:]}')
        return h5py.File(output, 'r')


def times(ps):
    """Returns a time as a configuration has it."""
    return f'{int(ps)} ps' if ps % 1000 else f'{int(ps) // 1000} ns'


# ------------------------------------------------------------------------------------------------ step by step
def rows_of(requests):
    """Returns the requests as rows of a CSV in the order of arrival, and the ids that the rows stand for."""
    order, placed = [], set()
    waiting = sorted((r for r in requests if r.get('after') is None), key=lambda r: r['arrival_ps'])
    left = [r for r in requests if r.get('after') is not None]
    for r in waiting:
        order.append(r)
        placed.add(r['id'])
    while left:
        ready = [r for r in left if r['after'] in placed]
        if not ready:
            raise Failure('requests wait for each other in a circle')
        order += ready
        placed |= {r['id'] for r in ready}
        left = [r for r in left if r['id'] not in placed]
    row_of = {r['id']: i for i, r in enumerate(order)}
    lines = ['arrival,prompt,output,session,after,think,hashes']
    for r in order:
        after = '' if r.get('after') is None else row_of[r['after']]
        think = '' if after == '' else f"{r.get('think_ps', 0)} ps"
        arrival = f"{r['arrival_ps']} ps" if after == '' else ''
        session = r.get('session')
        hashes = ' '.join(str(x) for x in r.get('hash_ids', []))
        lines.append(f"{arrival},{r['prompt']},{r['output']},{'' if session is None else session},{after},{think},{hashes}")
    return '\n'.join(lines) + '\n', [r['id'] for r in order]


def scheduler_options(instance):
    """Returns `scheduler` of an instance of the cases, whose defaults differ from those of a configuration."""
    return {'max-seqs': instance.get('max_num_seqs', 128), 'max-tokens': instance.get('max_num_batched_tokens', 2048),
            'block': instance.get('block', 16), 'prefix-cache': instance.get('prefix_cache', False),
            'ahead': instance.get('schedule_ahead', False), 'reserve-full': instance.get('reserve_full', True),
            'long-prefill': instance.get('long_prefill_threshold', 0),
            'watermark': instance.get('watermark_blocks', 0), 'max-length': instance.get('max_model_len', 0)}


def scheduler_config(runner, inputs):
    text, ids = rows_of(inputs['requests'])
    instance, roles = inputs.get('instance', {}), inputs.get('roles', ['both'])
    blocks = instance['blocks']
    if inputs.get('lockstep'):
        instances = [{'parallel': {'dp': len(roles)}, 'kv-blocks': blocks, 'role': roles[0]}]
    else:
        instances = [{'name': f'i{n}', 'role': role, 'kv-blocks': blocks} for n, role in enumerate(roles)]
    cost = inputs['cost']
    serving = {'requests': {'file': runner.write('requests.csv', text), 'format': 'orrery'},
               'router': {'policy': inputs.get('router') or 'round-robin', 'dispatch': times(inputs.get('dispatch_ps', 0)),
                          'report': times(inputs.get('report_ps', 0))},
               'scheduler': scheduler_options(instance), 'instances': instances,
               'step': {'model': 'linear',
                        'linear': {k: times(cost.get(f'{k}_ps', 0)) for k in ('base', 'token', 'sequence', 'context')}},
               'record': {'steps': True}}
    if 'network' in inputs:
        serving['transfer'] = {'bandwidth': f"{inputs['network']['bandwidth']} B/s",
                               'latency': times(inputs['network']['latency_ps'])}
    if inputs.get('kv_bytes_per_token'):
        serving['kv-bytes-per-token'] = inputs['kv_bytes_per_token']
    return serving, ids


def steps_of(results, ids):
    steps = {k: results['steps'][k][:].tolist() for k in
             ('instance', 'number', 'scheduled', 'start', 'end', 'used_blocks', 'items', 'preempted')}
    items = list(zip(*(results['steps_items'][k][:].tolist() for k in ('request', 'tokens', 'context'))))
    preempted = results['steps_preempted/request'][:].tolist()
    out, at, gone = [], 0, 0
    for i in range(len(steps['instance'])):
        many, lost = steps['items'][i], steps['preempted'][i]
        out.append({'instance': steps['instance'][i], 'step': steps['number'][i],
                    'scheduled_us': steps['scheduled'][i] / PS_US, 'start_us': steps['start'][i] / PS_US,
                    'end_us': steps['end'][i] / PS_US,
                    'items': [[ids[r], n, c] for r, n, c in items[at:at + many]],
                    'preempted': [ids[r] for r in preempted[gone:gone + lost]],
                    'used_blocks': steps['used_blocks'][i]})
        at, gone = at + many, gone + lost
    return out


def requests_of(results, ids):
    table = {k: results['requests'][k][:].tolist() for k in
             ('instance', 'decode_instance', 'scheduled', 'first', 'last', 'prefix_hit', 'preemptions', 'lost',
              'transferred')}
    out = {}
    for i, name in enumerate(ids):
        decode = table['decode_instance'][i]
        out[name] = {'id': name, 'instance': table['instance'][i], 'decode_instance': None if decode < 0 else decode,
                     'scheduled_us': table['scheduled'][i] / PS_US, 'first_us': table['first'][i] / PS_US,
                     'last_us': table['last'][i] / PS_US, 'prefix_hit': table['prefix_hit'][i],
                     'preemptions': table['preemptions'][i], 'lost': table['lost'][i],
                     'transferred': table['transferred'][i]}
    return out


def difference(found, expected, tolerance):
    """Returns the first place in which two nests differ, or none; numbers may differ by the tolerance."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            if key not in found:
                return f'{key} is missing'
            inner = difference(found[key], value, tolerance if key.endswith('_us') else 0)
            if inner:
                return f'{key}: {inner}'
        return None
    if isinstance(expected, list):
        if len(found) != len(expected):
            return f'{len(found)} entries instead of {len(expected)}'
        for i, (a, b) in enumerate(zip(found, expected)):
            inner = difference(a, b, tolerance)
            if inner:
                return f'{i}: {inner}'
        return None
    if isinstance(expected, (int, float)) and not isinstance(expected, bool) and found is not None:
        return None if abs(found - expected) <= tolerance else f'{found} instead of {expected}'
    return None if found == expected else f'{found} instead of {expected}'


def compare_schedule(results, ids, expected, tolerance):
    by_step = lambda s: (s['instance'], s['step'])
    requests = requests_of(results, ids)
    found = {'steps': sorted(steps_of(results, ids), key=by_step),
             'requests': [requests[r['id']] for r in expected['requests']],
             'blocks_in_use_at_end': int(sum(results['instances/blocks_in_use_at_end'][:])),
             'output_tokens': int(results['serving'].attrs['output_tokens'])}
    wanted = dict(expected, steps=sorted(expected['steps'], key=by_step))
    return difference(found, wanted, tolerance)


def scheduler(runner, case):
    serving, ids = scheduler_config(runner, case['inputs'])
    tolerance = case.get('tolerance') or {}
    for ranks in runner.ranks:
        with runner.run(serving, ranks) as results:
            wrong = compare_schedule(results, ids, case['expected'], tolerance.get('us', 0) if isinstance(tolerance, dict) else 0)
        if wrong:
            return False, f'{ranks} ranks: {wrong}'
    return True, f"{len(case['expected']['steps'])} steps"


# ------------------------------------------------------------------------------------------------ numbers
def within(found, expected, tolerance):
    """Says whether a number is within a tolerance, which is 0, a number, or {'relative' or 'absolute' or ...}."""
    if not isinstance(tolerance, dict):
        return abs(found - expected) <= (tolerance or 0)
    allowed = 0
    for kind, value in tolerance.items():
        if value is not None:
            allowed = max(allowed, value * abs(expected) if kind == 'relative' else value)
    return abs(found - expected) <= allowed


def one_request(**more):
    """Returns the smallest configuration: one request, linear steps."""
    serving = {'requests': {'arrivals': 'constant', 'count': 1, 'prompt': 16, 'output': 1},
               'step': {'model': 'linear', 'linear': {'base': '1 ms'}}, 'instances': [{'kv-blocks': 1000}]}
    serving.update(more)
    return serving


def kv_bytes_per_token(runner, case):
    i = case['inputs']
    formats = {2: 'bf16', 1: 'fp8', 0.5625: 'fp4'}
    model = {'layers': i['layers'], 'hidden': i.get('kv_heads', 128) * i.get('head_dim', 128),
             'heads': i.get('kv_heads', 128), 'head-size': i.get('head_dim', 128), 'sequence': 1024}
    if 'latent' in i:
        model['latent'] = {'key-value': i['latent'], 'rotary': i['rotary']}
    if i['width'] not in formats:
        return None, f"width {i['width']}"
    with runner.run(one_request(model=model, precision={'kv': formats[i['width']]})) as results:
        found = int(results['serving'].attrs['kv_bytes_per_token'])
    return within(found, case['expected']['bytes'], case.get('tolerance')), f'{found} bytes'


def kv_capacity(runner, case):
    i = case['inputs']
    instance = {'parallel': {'tp': i['gpus']}, 'memory-share': i['utilisation'], 'reserve': '0 B'}
    serving = one_request(instances=[instance], memory=f"{int(i['memory'])} B", weights=int(i['weights']),
                          scheduler={'block': i['block']})
    serving['kv-bytes-per-token'] = int(i['kv_bytes_per_token'])
    with runner.run(serving) as results:
        found = int(results['instances/blocks'][0]) * i['block']
    return within(found, case['expected']['tokens'], case['tolerance']), f"{found} tokens of {case['expected']['tokens']}"


def request_format(runner, case):
    i, expected = case['inputs'], case['expected']
    block = i.get('block', 16)
    serving = one_request(requests={'file': runner.path(i['file']), 'format': i['format']},
                          scheduler={'block': block, 'max-tokens': 1 << 20, 'max-seqs': 4096},
                          instances=[{'kv-blocks': 1 << 22}])
    with runner.run(serving) as results:
        attrs = dict(results['serving'].attrs)
        table = {k: results['requests'][k][:].tolist() for k in ('arrival', 'prompt', 'output', 'session', 'prefix_hit')}
    found = {'requests': int(attrs['requests']), 'input_tokens': int(attrs['input_tokens']),
             'output_tokens': int(attrs['output_tokens']), 'last_arrival_ps': int(attrs['last_arrival']),
             'last_arrival_ns': attrs['last_arrival'] / 1000, 'last_arrival_ms': attrs['last_arrival'] / PS_MS,
             'last_arrival_us': attrs['last_arrival'] / PS_US, 'last_arrival_s': attrs['last_arrival'] / 1e12,
             'prefix_hit_tokens_unlimited': int(attrs['prefix_hit_unlimited']),
             'sessions': len({s for s in table['session'] if s >= 0})}
    wrong = [f'{key} is {found.get(key)} instead of {value}' for key, value in expected.items()
             if key not in found or not within(found[key], value, case.get('tolerance'))]
    return not wrong, ', '.join(wrong) or f"{found['requests']} requests"


def queue(runner, case):
    i, expected, tolerance = case['inputs'], case['expected'], case['tolerance']
    if not i:                                                # Little's law, in a run with a queue
        serving = one_request(requests={'arrivals': 'poisson', 'rate': 80, 'count': 20000, 'prompt': 8, 'output': 3},
                              scheduler={'max-seqs': 2, 'ahead': False}, router={'dispatch': '0 ns', 'report': '0 ns'})
        serving['step']['linear']['base'] = '4 ms'
        with runner.run(serving) as results:
            table = {k: results['requests'][k][:] for k in ('arrival', 'scheduled', 'last')}
            end = int(results.attrs['simulated_time'])
            waiting, running = (results[f'instances/{k}_mean'][0] for k in ('waiting', 'running'))
        in_queue = float(sum(int(x) for x in table['scheduled'] - table['arrival'])) / end
        in_run = float(sum(int(x) for x in table['last'] - table['scheduled'])) / end
        worst = max(abs(waiting / in_queue - 1), abs(running / in_run - 1))
        return worst <= tolerance['relative'], f'difference {worst:.1e}'
    if 'users' in i:
        serving = one_request(requests={'arrivals': 'closed', 'users': i['users'], 'count': i['users'] * i['rounds'],
                                        'prompt': i['prompt'], 'output': i['output']},
                              scheduler={'ahead': i.get('schedule_ahead', False), 'max-seqs': 1024, 'max-tokens': 10**6},
                              router={'dispatch': '0 ns', 'report': '0 ns'}, instances=[{'kv-blocks': 100000}])
        serving['step'] = {'model': 'linear', 'linear': {'base': f"{i['base_us']} us", 'sequence': f"{i['sequence_us']} us"}}
        with runner.run(serving) as results:
            found = int(results.attrs['simulated_time']) / PS_US
            count = int(results['serving'].attrs['requests'])
        return abs(found - expected['makespan_us']) <= tolerance['us'] and count == expected.get('requests', count), f'{found} us'
    drawn = isinstance(i['step_ms'], str)
    step = float(i['step_ms'].split()[-1]) if drawn else i['step_ms']
    serving = one_request(requests={'arrivals': i['arrivals'], 'rate': i['rate_per_s'], 'count': i['requests'],
                                    'prompt': 8, 'output': i.get('output', 1)},
                          scheduler={'max-seqs': i.get('max_num_seqs', 1), 'ahead': False},
                          router={'dispatch': '0 ns', 'report': '0 ns'})
    serving['step'] = {'model': 'linear', 'linear': {'base': f'{step} ms', 'exponential': drawn}}
    with runner.run(serving) as results:
        sojourn = results['serving'].attrs['latency_mean'] / PS_MS
        wait = float((results['requests/scheduled'][:] - results['requests/arrival'][:]).mean()) / PS_MS
    if 'mean_wait_ms' in expected:
        return within(wait, expected['mean_wait_ms'], tolerance), f'mean wait {wait:.4f} ms'
    return within(sojourn, expected['mean_sojourn_ms'], tolerance), f'mean sojourn {sojourn:.4f} ms'


def linear_step(runner, case):
    """One step with these prompts and these requests that generate."""
    i, expected = case['inputs'], case['expected']
    k = i['coefficients_ms']
    decode, prefill = i['decode'], i['prefill']
    # The requests that generate are prefilled in step 0 and generate in step 1, which the prompts join.
    lines = ['arrival,prompt,output'] + [f'0 ps,{n},2' for n in decode]
    lines += [f'{1 if decode else 0} ps,{n},1' for n in prefill]
    serving = one_request(requests={'file': runner.write('requests.csv', '\n'.join(lines) + '\n')},
                          router={'dispatch': '0 ns', 'report': '0 ns'}, record={'steps': True},
                          scheduler={'ahead': False, 'prefix-cache': False, 'max-seqs': 100000, 'max-tokens': 1 << 30},
                          instances=[{'kv-blocks': 1 << 24}])
    serving['step'] = {'model': 'fitted', 'fitted': {'prefill': k['prefill'], 'decode': k['decoding_smallbs'],
                                                     'large-decode': k['decoding_largebs'],
                                                     'threshold': k['decoding_large_small_bs_threshold']}}
    with runner.run(serving) as results:
        last = 1 if decode else 0
        found = int(results['steps/end'][last] - results['steps/start'][last]) / PS_MS
    return within(found, expected['ms'], case['tolerance']), f"{found} ms of {expected['ms']}"


def pd_split(runner, case):
    """A fleet of one prefill and one decode instance, whose busy times are those of a day, scaled down."""
    i, expected = case['inputs'], case['expected']
    # One request stands for so many tokens; a node takes 1 / rate for each.
    scale = 1e-6
    prompts, outputs = i['input_tokens_per_day'] / 86400 / i['nodes'], i['output_tokens_per_day'] / 86400 / i['nodes']
    shares = []
    for tokens, rate in ((prompts, i['prefill_tokens_per_node_s']), (outputs, i['decode_tokens_per_node_s'])):
        count = max(1, round(tokens))
        serving = one_request(requests={'arrivals': 'constant', 'rate': 1, 'count': 1, 'prompt': count, 'output': 1},
                              scheduler={'max-tokens': count, 'ahead': False, 'prefix-cache': False},
                              instances=[{'kv-blocks': count // 16 + 1}])
        serving['step'] = {'model': 'linear', 'linear': {'token': f'{1e9 / rate:.6f} ns'}}
        with runner.run(serving) as results:
            shares.append(int(results['instances/busy_time'][0]) / 1e12)
    found = {'prefill_share': shares[0], 'decode_share': shares[1]}
    wrong = [f'{k} is {found[k]} instead of {v}' for k, v in expected.items() if not within(found[k], v, case['tolerance'])]
    return not wrong, ', '.join(wrong) or f'{shares[0]:.4f} {shares[1]:.4f}'


KINDS = {f.__name__: f for f in (scheduler, kv_bytes_per_token, kv_capacity, request_format, queue, linear_step, pd_split)}


def load(path):
    with (gzip.open(path, 'rt') if path.endswith('.gz') else open(path)) as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('folder')
    parser.add_argument('--kind', action='append', help='cases of this kind only')
    parser.add_argument('--id', action='append', help='cases whose ids begin so')
    parser.add_argument('--ranks', default='1', help='numbers of ranks for the scheduler cases, such as 1,2,3,4,8')
    parser.add_argument('--program', default=os.path.join(ROOT, 'build', 'release', 'bin', 'orrery'))
    options = parser.parse_args()
    runner = Runner(os.path.abspath(options.program), [int(r) for r in options.ranks.split(',')])
    passed = failed = 0
    for path in sorted(glob.glob(os.path.join(options.folder, '**', 'cases.json*'), recursive=True)):
        runner.base = os.path.dirname(os.path.abspath(path))
        for case in load(path):
            if options.kind and case['kind'] not in options.kind:
                continue
            if options.id and not any(case['id'].startswith(i) for i in options.id):
                continue
            run = KINDS.get(case['kind'])
            if run is None:
                print(f"skip {case['kind']} {case['id']}: this kind is not known")
                continue
            try:
                good, text = run(runner, case)
            except (Failure, KeyError, ValueError, OSError, subprocess.TimeoutExpired) as error:
                good, text = False, f'{type(error).__name__}: {error}'
            if good is None:
                print(f"skip {case['kind']} {case['id']}: {text}")
                continue
            passed, failed = passed + bool(good), failed + (not good)
            print(f"{'ok  ' if good else 'FAIL'} {case['kind']} {case['id']}: {text}", flush=True)
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
