"""LLVM code of kernels, written with fewer words than numba's: the time of a first call goes into those words.

What kernels are made of is written straight: cells and rows of arrays of numbers, lengths, loops over ranges. numba keeps the
records of all of these on the stack, which LLVM has to find out to be no memory at all: a loop takes it a hundred instructions.
And a kernel that counts no memory (`compiling.compiled_loops`) has nothing to release: no variable is read before it is written
again. What the code does is the same; everything else is left to numba.
"""

from numba.core import cgutils, ir, types
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.np.arrayobj import fix_integer_index, load_item, store_item


class _Lower(Lower):
    def storevar(self, value, name, argidx=None):
        if argidx is not None or self.context.enable_nrt:
            return super().storevar(value, name, argidx)
        self._alloca_var(name, self.typeof(name))
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))

    def lower_expr(self, resty, expr):
        write = _WRITERS.get(expr.op)
        written = write(self, resty, expr) if write else None
        return super().lower_expr(resty, expr) if written is None else written

    def lower_setitem(self, target_var, index_var, value_var, signature):
        array, index = self.typeof(target_var.name), self.typeof(index_var.name)
        if self._n_places(array, index) != array.ndim:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        value = self.loadvar(value_var.name)
        value = self.context.cast(self.builder, value, self.typeof(value_var.name), array.dtype)
        store_item(self.context, self.builder, array, value, self._pointer(array, target_var, index_var))

    # ---------------------------------------------------------------------------------------------------------- arrays

    def _getitem(self, resty, expr):
        """``array[i, j]`` of numbers, or a row of a contiguous array."""
        index_var = expr.index if expr.op == "getitem" else expr.index_var
        array = self.typeof(expr.value.name)
        if index_var is None:
            return None
        n_places = self._n_places(array, self.typeof(index_var.name))
        if n_places == 0 or (n_places < array.ndim and not array.layout == resty.layout == "C"):
            return None
        pointer = self._pointer(array, expr.value, index_var)
        if n_places == array.ndim:
            found = load_item(self.context, self.builder, array, pointer)
            return self.context.cast(self.builder, found, array.dtype, resty)
        return self._row(array, resty, self.loadvar(expr.value.name), n_places, pointer)

    def _row(self, array, kind, record, n_places, pointer):
        builder, model = self.builder, self.context.data_model_manager[kind]
        row = self.context.get_constant_undef(kind)
        n_items = None
        for axis in range(kind.ndim):
            length = self._field(array, record, "shape", n_places + axis)
            n_items = length if n_items is None else builder.mul(n_items, length)
            row = builder.insert_value(row, length, [model.get_field_position("shape"), axis])
            stride = self._field(array, record, "strides", n_places + axis)
            row = builder.insert_value(row, stride, [model.get_field_position("strides"), axis])
        for field in ("meminfo", "parent", "itemsize"):
            row = builder.insert_value(row, self._field(array, record, field), model.get_field_position(field))
        row = builder.insert_value(row, n_items, model.get_field_position("nitems"))
        row = builder.insert_value(row, pointer, model.get_field_position("data"))
        self.incref(kind, row)
        return row

    def _n_places(self, array, index):
        """How many integers say where in an array of numbers; 0: something else is asked for."""
        places = index.types if isinstance(index, types.BaseTuple) else (index,)
        if not isinstance(array, types.Array) or not isinstance(array.dtype, (types.Number, types.Boolean)):
            return 0
        if self.context.enable_boundscheck or not all(isinstance(each, types.Integer) for each in places):
            return 0
        return len(places)

    def _pointer(self, array, value, index):
        """Where the number (or the first one of the row) is."""
        context, builder = self.context, self.builder
        record, wanted, kind = self.loadvar(value.name), self.loadvar(index.name), self.typeof(index.name)
        if isinstance(kind, types.BaseTuple):
            built = self._definition(index)
            items = built.items if _is(built, "build_tuple") else [None] * len(kind)
            places = [(each, builder.extract_value(wanted, axis)) for axis, each in enumerate(kind.types)]
        else:
            items, places = [index], [(kind, wanted)]
        for axis, ((each, place), item) in enumerate(zip(places, items, strict=True)):
            if self._is_from_zero(each, item):
                places[axis] = place
            else:
                length = self._field(array, record, "shape", axis)
                places[axis] = fix_integer_index(context, builder, types.unliteral(each), place, length)
        data = self._field(array, record, "data")
        if array.layout != "C":
            strides = [self._field(array, record, "strides", axis) for axis in range(array.ndim)]
            return cgutils.get_item_pointer2(context, builder, data, [], strides, "A", places)
        at = places[0]
        for axis in range(1, array.ndim):
            at = builder.mul(at, self._field(array, record, "shape", axis))
            if axis < len(places):
                at = builder.add(at, places[axis])
        return builder.gep(data, [at])

    def _is_from_zero(self, kind, item):
        """Does the source say that this index is not negative? A number, or the variable of a loop that counts up from one."""
        if isinstance(kind, types.IntegerLiteral):
            return kind.literal_value >= 0 and kind.literal_type == types.intp
        for op in ("pair_first", "iternext", "getiter"):
            found = self._definition(item)
            if not _is(found, op):
                return False
            item = found.value
        if kind != types.intp or not isinstance(self.typeof(item.name), types.RangeType):
            return False
        call = self._definition(item)
        if self._step(call) != 1:
            return False
        start = 0 if len(call.args) == 1 else self._constant(call.args[0])
        return start is not None and start >= 0

    def _field(self, array, record, field, *axis):
        position = self.context.data_model_manager[array].get_field_position(field)
        return self.builder.extract_value(record, [position, *axis])

    def _getattr(self, resty, expr):
        """``array.shape``"""
        array = self.typeof(expr.value.name)
        if expr.attr == "shape" and isinstance(array, types.Array):
            return self._field(array, self.loadvar(expr.value.name), "shape")
        return None

    # ----------------------------------------------------------------------------------------------------------- loops

    def _call(self, resty, expr):
        """``range(...)`` and ``len(array)``"""
        function = getattr(self.typeof(expr.func.name), "typing_key", None)
        if expr.kws or expr.vararg:
            return None
        if function is len and isinstance(self.typeof(expr.args[0].name), types.Array):
            array = self.typeof(expr.args[0].name)
            return self._field(array, self.loadvar(expr.args[0].name), "shape", 0)
        if function is not range:
            return None
        bounds = [self._cast_var(each, resty.dtype) for each in expr.args]
        zero, one = (self.context.get_constant(resty.dtype, number) for number in (0, 1))
        start, stop, step = {1: lambda: (zero, *bounds, one), 2: lambda: (*bounds, one), 3: lambda: bounds}[
            len(bounds)
        ]()
        state = self.context.get_constant_undef(resty)
        for place, value in enumerate((start, stop, step)):
            state = self.builder.insert_value(state, value, place)
        return state

    def _getiter(self, resty, expr):
        """The beginning of a loop over a range of step 1 or -1."""
        builder = self.builder
        step = self._step(self._definition(expr.value))
        if not isinstance(self.typeof(expr.value.name), types.RangeType) or step not in (1, -1):
            return None
        state = self.loadvar(expr.value.name)
        start, stop, move = (builder.extract_value(state, place) for place in range(3))
        count = builder.sub(stop, start) if step == 1 else builder.sub(start, stop)
        loop = self.context.get_constant_undef(resty)
        for place, value in enumerate(
            (cgutils.alloca_once(builder, start.type), stop, move, cgutils.alloca_once(builder, start.type))
        ):
            loop = builder.insert_value(loop, value, place)
        builder.store(start, builder.extract_value(loop, 0))
        builder.store(count, builder.extract_value(loop, 3))  # below zero: no round, as in `_iternext`
        return loop

    def _step(self, call):
        """The step of a range where its source says it, else None."""
        if not _is(call, "call") or call.kws or call.vararg:
            return None
        return 1 if len(call.args) < 3 else self._constant(call.args[2])

    def _constant(self, variable):
        found = self._definition(variable)
        return found.value if isinstance(found, (ir.Const, ir.Global, ir.FreeVar)) else None

    def _definition(self, variable):
        """What a variable is, where that is one thing."""
        try:
            return self.func_ir.get_definition(variable)
        except KeyError:
            return None

    def _iternext(self, resty, expr):
        if not isinstance(self.typeof(expr.value.name), types.RangeIteratorType):
            return None
        builder, loop = self.builder, self.loadvar(expr.value.name)
        at, _, step, left = (builder.extract_value(loop, place) for place in range(4))
        value, count = builder.load(at), builder.load(left)
        builder.store(builder.sub(count, count.type(1), flags=["nsw"]), left)
        builder.store(builder.add(value, step), at)
        pair = builder.insert_value(self.context.get_constant_undef(resty), value, 0)
        return builder.insert_value(pair, builder.icmp_signed(">", count, count.type(0)), 1)

    def _pair(self, resty, expr):
        """The value of a loop, and whether there is one."""
        pair = self.typeof(expr.value.name)
        if not isinstance(pair, types.Pair) or not isinstance(pair.first_type, types.Integer):
            return None
        return self.builder.extract_value(self.loadvar(expr.value.name), 0 if expr.op == "pair_first" else 1)


def _is(expression, op):
    return isinstance(expression, ir.Expr) and expression.op == op


_WRITERS = {
    "getitem": _Lower._getitem,
    "static_getitem": _Lower._getitem,
    "getattr": _Lower._getattr,
    "call": _Lower._call,
    "getiter": _Lower._getiter,
    "iternext": _Lower._iternext,
    "pair_first": _Lower._pair,
    "pair_second": _Lower._pair,
}


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(NativeLowering):
    """numba's pass with that class."""

    _name = "kernel_lowering"

    @property
    def lowering_class(self):
        return _Lower
