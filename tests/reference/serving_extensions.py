"""Pipelines and transfers by layers, on top of the plain reference program `servesim` of a folder of cases.

A step passes the stages of a pipeline in order, and each stage has one step at a time. A request whose token is under
way is left out until as many steps as stages have been scheduled, and a step that needs this token starts when it is
known. With transfers by layers the decode instance is chosen when the last step of the prefill has been scheduled, and
each layer leaves when it is complete and has been asked for.
"""
import math

import servesim

PS_S = servesim.PS_S


def extend(cluster, stages, hop, layers):
    """Turns a cluster of servesim into one with pipelines or transfers by layers. `hop`: from tokens to ps."""
    cluster.__class__ = ExtendedCluster
    cluster.layers = layers
    for instance in cluster.instances:
        instance.__class__ = PipelinedInstance
        instance.stages, instance.hop, instance.free, instance.is_scheduling = stages, hop, [0] * stages, False
        instance.depth += stages - 1
        if layers:
            instance.pull = lambda req, tokens, now, inst=instance: cluster.ask(req, tokens, now, inst)
    return cluster


class PipelinedInstance(servesim.Instance):
    def schedule(self, now):
        self.is_scheduling = True
        batch = super().schedule(now)
        self.is_scheduling = False
        return batch

    def goal(self, req):
        """A request has nothing to do in this step if its token comes too late for it."""
        if self.is_scheduling and req.inflight > 0 and self.batches < req.sampled_in + self.stages:
            return 0
        return super().goal(req)

    def admit_tokens(self, req, n, need, batch):
        if req.inflight > 0 and req.computed >= req.tokens():
            batch.after = max(getattr(batch, "after", 0), req.sampled_in + 1)
        before = req.inflight
        super().admit_tokens(req, n, need, batch)
        if req.inflight > before:
            req.sampled_in = batch.number


class ExtendedCluster(servesim.Cluster):
    def start_steps(self, inst, t):
        while len(inst.flight) < inst.depth:
            batch = inst.schedule(t)
            if batch is None:
                return
            self.pass_stages(inst, batch, t)
            inst.flight.append(batch)
            self.note(inst, batch)
            self.push(batch.end, 0, ("step_end", inst, batch))
            for req, _, _, (_, samples) in batch.items if self.layers and inst.role == "prefill" else []:
                if samples and req.output > 1:
                    self.push(t + self.report_delay, 2, ("prefilling", inst, batch, req))

    def pass_stages(self, inst, batch, t):
        whole = max(1, inst.cost.step(batch))
        needed = [b.end for b in inst.flight if b.number < getattr(batch, "after", 0)]
        at = batch.start = max([t, inst.free[0]] + needed)
        for s in range(inst.stages):
            own = whole * (s + 1) // inst.stages - whole * s // inst.stages
            at = max(at, inst.free[s]) + max(1, own)
            inst.free[s] = at
            if s + 1 < inst.stages:
                at += inst.hop(batch.total())
        batch.end = at

    # -- transfers by layers: the request exists twice until its prefill has ended --
    def report(self, t, touched, inst, finished, waiting, running, made):
        if not self.layers or inst.role != "prefill":
            return super().report(t, touched, inst, finished, waiting, running, made)
        gone = [req for req in finished if req.output > 1]
        for req in gone:
            del self.views[inst.number].open[req.id]
        super().report(t, touched, inst, [req for req in finished if req.output == 1], waiting, running, made)

    def prefilling(self, t, touched, inst, batch, req):
        twin = servesim.Request(req.id, req.arrival, req.prompt, req.output, req.keys, req.session)
        twin.known, twin.remote, twin.times, twin.first = 1, req.prompt, [batch.end], batch.end
        twin.origin, twin.prefill, twin.home = req, batch, inst
        req.twin = twin
        self.hand_over(twin)

    def ask(self, twin, tokens, now, inst):
        self.push(now + self.network.latency, 5 + twin.home.number * 1e-6, ("begin_layers", twin, tokens, inst))

    def begin_layers(self, t, touched, twin, tokens, inst):
        start, end = twin.prefill.start, twin.prefill.end
        twin.arrival_of_layers = 0
        for layer in range(self.layers):
            complete = start + (end - start) * (layer + 1) // self.layers
            what = ("send_layer", twin, tokens, inst, layer)
            if complete <= t:
                self.send_layer(t, touched, *what[1:])
            else:
                self.push(complete, 5 + twin.home.number * 1e-6, what)

    def send_layer(self, t, touched, twin, tokens, inst, layer):
        whole = tokens * self.kv_bytes
        size = whole * (layer + 1) // self.layers - whole * layer // self.layers
        end = self.network.send(t, twin.home.number, inst.number, size)
        twin.arrival_of_layers = max(twin.arrival_of_layers, end)
        if layer + 1 == self.layers:
            self.push(twin.arrival_of_layers, 1, ("layers_end", twin, inst))

    def layers_end(self, t, touched, twin, inst):
        self.release_home(t, touched, twin.origin)
        twin.computed, twin.remote, twin.status = twin.prompt, 0, "arrived_kv"
        inst.pool.enter(twin, twin.prompt)
        touched.add(inst)


def activations(hidden, latency_ps, bandwidth):
    """Returns the time of the activations of so many rows between two stages, in ps."""
    return lambda rows: latency_ps + math.ceil(max(1, rows) * hidden * 2 * PS_S / bandwidth)


def whole_requests(requests):
    """Returns what became of requests that decode instances have a twin of."""
    for req in requests:
        twin = getattr(req, "twin", None)
        if twin is None:
            continue
        req.decode_instance, req.last, req.times = twin.decode_instance, twin.last, twin.times
        req.hit, req.lost = req.hit + twin.hit, req.lost + twin.lost
        req.preemptions, req.transferred = req.preemptions + twin.preemptions, twin.transferred
    return requests
