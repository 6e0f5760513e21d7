"""Kernels that other kernels call: compiled as far as the caller needs them, and no further.

numba makes of every function a thing of its own: optimised, turned into machine code, wrapped for Python. A kernel that another
one calls is then taken up into the caller's code and optimised there again, which is what counts; all else about it is time
lost, and that was two fifths of a first fit. So the functions that callers see stop before those steps.
"""

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


def give_inner(dispatcher, function, options):
    """From now on, kernels that call `dispatcher` take up a twin of it, which Python cannot call and no cache keeps."""
    inner = numba.njit(**options, pipeline_class=_InnerCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True)(
        function
    )
    dispatcher.get_call_template, dispatcher.get_overload = inner.get_call_template, inner.get_overload


class _InnerCompiler(Compiler):
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
