"""ShardedOptimizer with parameters on the GPU: two processes, each with a share of the state."""

import sharded_checks

from autograd import distributed


def test_sharded_steps_are_the_optimizers_own(wgpu):
    distributed.spawn(sharded_checks.sharded_steps_on_wgpu, 2)
