"""The units of a plan on a Ray cluster."""

from dpn_plugin.bench.on_ray.executor import RayExecutor

__all__ = ["RayExecutor"]
