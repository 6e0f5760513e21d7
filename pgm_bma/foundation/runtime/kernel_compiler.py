"""How kernels are compiled: numba's own steps, less what plain loops do not need.

Kernels that other kernels call are compiled as far as the caller needs them, and no further: numba makes of every function a thing
of its own, optimised, turned into machine code, wrapped for Python; taken up into the caller's code it is optimised there again,
which is what counts.

And steps that look for what kernels do not have are left out: array expressions to be fused, branches that the types of arguments
decide, and (where the source has none) closures. What ``+`` or ``[]`` means for given types is looked up once, not at every place.
"""

from functools import lru_cache
from types import CodeType

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import PassManager
from numba.core.targetconfig import ConfigStack
from numba.core.types import BaseFunction, unliteral

from pgm_bma.foundation.runtime.kernel_lowering import KernelLowering

_UNUSED = {"NopythonRewrites", "DeadBranchPrune", "WithLifting", "AnnotateTypes"}
_CLOSURES = {"InlineClosureLikes", "MakeFunctionToJitFunction"}
_MEMORY = {"IRLegalization"}  # where the last use of every variable is
# Versions of numba that this was tried with, from the first to before the second. What is written here leans on numba's inside:
# others compile in their own way, which takes longer, rather than in a way that nobody has seen.
TRIED = ((0, 60), (0, 69))


def njit(function, options):
    """numba's ``njit`` in this way. Kernels that call the result take up a twin of it: Python cannot call it, no cache keeps it.

    None where numba is of a version that was not tried.
    """
    if not TRIED[0] <= numba.version_info.short < TRIED[1]:
        return None
    dispatcher = numba.njit(**options, pipeline_class=_KernelCompiler, no_cfunc_wrapper=True)(function)
    inner = numba.njit(**options, pipeline_class=_InnerCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True)(
        function
    )

    def get_call_template(args, kws):  # a constant is a number like others, not a reason to compile once more
        return inner.get_call_template([unliteral(a) for a in args], {name: unliteral(a) for name, a in kws.items()})

    dispatcher.get_call_template, dispatcher.get_overload = get_call_template, inner.get_overload
    return dispatcher


@lru_cache
def _remembering(kind):
    """A typing context of this kind that remembers which implementation of a built-in function the types of arguments chose."""

    class Remembering(kind):
        def _resolve_user_function_type(self, func, args, kws, literals=None):
            function = self._lookup_global(func) or func
            if not isinstance(function, BaseFunction):
                return super()._resolve_user_function_type(func, args, kws, literals)
            flags = ConfigStack.top_or_none()
            key = function, tuple(args), tuple(kws.items()), flags and flags.summary()
            if key not in self._remembered:
                signature = super()._resolve_user_function_type(func, args, kws, literals)
                if signature is None:
                    return None
                self._remembered[key] = signature, function._impl_keys[signature.args]
            signature, implementation = self._remembered[key]
            function._impl_keys[signature.args] = implementation
            return signature.replace()  # a signature of its own: numba may refine it

    return Remembering


@lru_cache
def _context(typing):
    """numba's typing context with that memory; everything else is shared with numba's own."""
    made = object.__new__(_remembering(type(typing)))
    made.__dict__ = typing.__dict__
    typing._remembered = {}
    return made


class _KernelCompiler(Compiler):
    def __init__(self, typingctx, *arguments):
        super().__init__(_context(typingctx), *arguments)

    def define_pipelines(self):
        has_closures = any(isinstance(constant, CodeType) for constant in self.state.func_id.code.co_consts)
        left_out = _UNUSED | (set() if has_closures else _CLOSURES) | (set() if self.state.flags.nrt else _MEMORY)
        kernel = _Passes("kernel")
        (manager,) = super().define_pipelines()
        for step, what in manager.passes:
            if step.__name__ not in left_out:
                kernel.add_pass(KernelLowering if step.__name__ == "NativeLowering" else step, what)
        kernel.finalize()
        return [kernel]


class _Passes(PassManager):
    """numba's steps one after another, without its bookkeeping of each."""

    def _runPass(self, index, pss, internal_state):
        pss.analysis = self._analysis
        pss.run_initialization(internal_state)
        pss.run_pass(internal_state)
        pss.run_finalizer(internal_state)


class _InnerCompiler(_KernelCompiler):
    def compile_extra(self, func):
        self.state.library = _InnerLibrary(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


class _InnerLibrary(JITCodeLibrary):
    """Code to be taken up by others: made small by cheap passes, neither optimised in full nor turned into machine code."""

    def _optimize_functions(self, ll_module):
        if not hasattr(self._codegen, "_pass_builder"):  # numba before 0.61
            return super()._optimize_functions(ll_module)
        ll_module.data_layout = self._codegen._data_layout
        for function in ll_module.functions:
            if not function.is_declaration:
                manager, builder = self._codegen._function_pass_manager(opt=1)
                manager.run(function, builder)

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
