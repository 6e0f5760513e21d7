"""How kernels are compiled: numba's own steps, less what plain loops do not need.

Kernels that other kernels call are compiled as far as the caller needs them, and no further: numba makes of every function a thing
of its own, optimised, turned into machine code, wrapped for Python; taken up into the caller's code it is optimised there again,
which is what counts.

And steps that look for what kernels do not have are left out: array expressions to be fused, branches that the types of arguments
decide, and (where the source has none) closures.
"""

from types import CodeType

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.types import unliteral

_UNUSED = {"NopythonRewrites", "DeadBranchPrune"}
_CLOSURES = {"InlineClosureLikes", "MakeFunctionToJitFunction"}


def njit(function, options):
    """numba's ``njit`` in this way. Kernels that call the result take up a twin of it: Python cannot call it, no cache keeps it."""
    dispatcher = numba.njit(**options, pipeline_class=_KernelCompiler)(function)
    inner = numba.njit(**options, pipeline_class=_InnerCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True)(
        function
    )

    def get_call_template(args, kws):  # a constant is a number like others, not a reason to compile once more
        return inner.get_call_template([unliteral(a) for a in args], {name: unliteral(a) for name, a in kws.items()})

    dispatcher.get_call_template, dispatcher.get_overload = get_call_template, inner.get_overload
    return dispatcher


class _KernelCompiler(Compiler):
    def define_pipelines(self):
        managers = super().define_pipelines()
        has_closures = any(isinstance(constant, CodeType) for constant in self.state.func_id.code.co_consts)
        left_out = _UNUSED if has_closures else _UNUSED | _CLOSURES
        for manager in managers:
            manager.passes[:] = [each for each in manager.passes if each[0].__name__ not in left_out]
            manager.finalize()
        return managers


class _InnerCompiler(_KernelCompiler):
    def compile_extra(self, func):
        self.state.library = _InnerLibrary(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


class _InnerLibrary(JITCodeLibrary):
    """Code to be taken up by others: neither optimised nor turned into machine code."""

    @property
    def codegen(self):
        return _WithoutEnvironment(self._codegen)

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name):
        self._ensure_finalized()
        return 0


class _WithoutEnvironment:
    """numba's code generator, but for the Python objects of a function, which code that is not run does not have."""

    def __init__(self, codegen):
        self._codegen = codegen

    def __getattr__(self, name):
        return getattr(self._codegen, name)

    def set_env(self, env_name, env):
        pass
