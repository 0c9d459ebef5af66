"""The function that XLA calls, in LLVM's language: it reads XLA's call frame and shares the points out to threads.

Offsets are those of XLA's stable C interface (``xla/ffi/api/c_api.h`` under `jax.ffi.include_dir()`).
"""

import os
import re
from functools import cache
from pathlib import Path
from string import Template

import jax

# Threads take this many points at a time, times statements: some tens of microseconds of work.
_CHUNK_WORK = 1 << 21

_HANDLER = Template("""
@$limit = external global i64

declare ptr @malloc(i64)
declare void @free(ptr)
$declare_yield

define i64 @data_of(ptr %buffers, i64 %n) alwaysinline {
  %slot = getelementptr ptr, ptr %buffers, i64 %n
  %buffer = load ptr, ptr %slot
  %place = getelementptr i8, ptr %buffer, i64 24
  %data = load i64, ptr %place
  ret i64 %data
}

; A share of the work: {next chunk, chunks done, users, chunks, points, inputs, outputs}
define internal void @take_chunks(ptr %share) {
entry:
  %done.p = getelementptr i64, ptr %share, i64 1
  %chunks.p = getelementptr i64, ptr %share, i64 3
  %chunks = load i64, ptr %chunks.p
  %points.p = getelementptr i64, ptr %share, i64 4
  %points = load i64, ptr %points.p
  br label %next
next:
  %chunk = atomicrmw add ptr %share, i64 1 acq_rel
  %some = icmp slt i64 %chunk, %chunks
  br i1 %some, label %work, label %out
work:
  %in.p = getelementptr ptr, ptr %share, i64 5
  %in = load ptr, ptr %in.p
  %outputs.p = getelementptr ptr, ptr %share, i64 6
  %outputs = load ptr, ptr %outputs.p
  %begin = mul i64 %chunk, $chunk
  %full = add i64 %begin, $chunk
  %short = icmp slt i64 %points, %full
  %end = select i1 %short, i64 %points, i64 %full
  call void @points(ptr %in, ptr %outputs, i64 %begin, i64 %end)
  %before = atomicrmw add ptr %done.p, i64 1 acq_rel
  br label %next
out:
  ret void
}

define internal void @leave(ptr %share) {
  %users.p = getelementptr i64, ptr %share, i64 2
  %users = atomicrmw sub ptr %users.p, i64 1 acq_rel
  %last = icmp eq i64 %users, 1
  br i1 %last, label %drop, label %out
drop:
  call void @free(ptr %share)
  br label %out
out:
  ret void
}

define internal void @help(ptr %share) {
  call void @take_chunks(ptr %share)
  call void @leave(ptr %share)
  ret void
}

; How many threads to use at most, XLA's pool and the user's limit considered.
define internal i64 @threads(ptr %api, ptr %ctx) {
  %count = alloca i64
  store i64 1, ptr %count
  %args = alloca [4 x i64]
  store i64 32, ptr %args
  %ext.p = getelementptr i64, ptr %args, i64 1
  store i64 0, ptr %ext.p
  %ctx.p = getelementptr i64, ptr %args, i64 2
  store ptr %ctx, ptr %ctx.p
  %count.p = getelementptr i64, ptr %args, i64 3
  store ptr %count, ptr %count.p
  %call.p = getelementptr i8, ptr %api, i64 144
  %call = load ptr, ptr %call.p
  %error = call ptr %call(ptr %args)
  call void @forget(ptr %api, ptr %error)
  %pool = load i64, ptr %count
  %limit = load i64, ptr @$limit
  %fewer = icmp slt i64 %limit, %pool
  %threads = select i1 %fewer, i64 %limit, i64 %pool
  ret i64 %threads
}

define internal void @forget(ptr %api, ptr %error) {
  %none = icmp eq ptr %error, null
  br i1 %none, label %out, label %destroy
destroy:
  %args = alloca [3 x i64]
  store i64 24, ptr %args
  %ext.p = getelementptr i64, ptr %args, i64 1
  store i64 0, ptr %ext.p
  %error.p = getelementptr i64, ptr %args, i64 2
  store ptr %error, ptr %error.p
  %call.p = getelementptr i8, ptr %api, i64 64
  %call = load ptr, ptr %call.p
  call void %call(ptr %args)
  br label %out
out:
  ret void
}

; Whoever is free takes the next chunk. A helper that comes late finds none, so nobody waits for one to start.
define internal void @share_out(ptr %api, ptr %ctx, ptr %in, ptr %out, i64 %points, i64 %chunks, i64 %threads) {
entry:
  %share = call ptr @malloc(i64 64)
  store i64 0, ptr %share
  %done.p = getelementptr i64, ptr %share, i64 1
  store i64 0, ptr %done.p
  %users.p = getelementptr i64, ptr %share, i64 2
  store i64 %threads, ptr %users.p
  %chunks.p = getelementptr i64, ptr %share, i64 3
  store i64 %chunks, ptr %chunks.p
  %points.p = getelementptr i64, ptr %share, i64 4
  store i64 %points, ptr %points.p
  %in.p = getelementptr ptr, ptr %share, i64 5
  store ptr %in, ptr %in.p
  %out.p = getelementptr ptr, ptr %share, i64 6
  store ptr %out, ptr %out.p
  %args = alloca [5 x i64]
  store i64 40, ptr %args
  %ext.p = getelementptr i64, ptr %args, i64 1
  store i64 0, ptr %ext.p
  %ctx.p = getelementptr i64, ptr %args, i64 2
  store ptr %ctx, ptr %ctx.p
  %task.p = getelementptr i64, ptr %args, i64 3
  store ptr @help, ptr %task.p
  %data.p = getelementptr i64, ptr %args, i64 4
  store ptr %share, ptr %data.p
  %call.p = getelementptr i8, ptr %api, i64 136
  %call = load ptr, ptr %call.p
  br label %ask
ask:
  %helper = phi i64 [1, %entry], [%helper.next, %asked]
  %enough = icmp sge i64 %helper, %threads
  br i1 %enough, label %work, label %schedule
schedule:
  %error = call ptr %call(ptr %args)
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %asked, label %refused
refused:
  call void @forget(ptr %api, ptr %error)
  call void @leave(ptr %share)
  br label %asked
asked:
  %helper.next = add i64 %helper, 1
  br label %ask
work:
  call void @take_chunks(ptr %share)
  br label %wait
wait:
  %done = load atomic i64, ptr %done.p acquire, align 8
  %all = icmp sge i64 %done, %chunks
  br i1 %all, label %out.block, label %again
again:
  ; A helper at work may be waiting for this very core.
  $yield_core
  br label %wait
out.block:
  call void @leave(ptr %share)
  ret void
}

define ptr @$name(ptr %frame) {
entry:
  %extension.p = getelementptr i8, ptr %frame, i64 8
  %extension = load ptr, ptr %extension.p
  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %run, label %asked
asked:
  %type.p = getelementptr i8, ptr %extension, i64 8
  %type = load i32, ptr %type.p
  %metadata.asked = icmp eq i32 %type, 1
  br i1 %metadata.asked, label %answer, label %run
answer:
  %metadata.p = getelementptr i8, ptr %extension, i64 24
  %metadata = load ptr, ptr %metadata.p
  %major.p = getelementptr i8, ptr %metadata, i64 24
  store i32 $major, ptr %major.p
  %minor.p = getelementptr i8, ptr %metadata, i64 28
  store i32 $minor, ptr %minor.p
  %traits.p = getelementptr i8, ptr %metadata, i64 32
  store i32 0, ptr %traits.p
  ret ptr null
run:
  %api.p = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api.p
  %ctx.p = getelementptr i8, ptr %frame, i64 24
  %ctx = load ptr, ptr %ctx.p
  %args.p = getelementptr i8, ptr %frame, i64 72
  %args = load ptr, ptr %args.p
  %rets.p = getelementptr i8, ptr %frame, i64 112
  %rets = load ptr, ptr %rets.p
  %in = alloca [$inputs x i64]
  %out = alloca [$outputs x i64]
  br label %in.loop
in.loop:
  %n = phi i64 [0, %run], [%n.next, %in.next]
  %n.more = icmp slt i64 %n, $inputs
  br i1 %n.more, label %in.next, label %out.loop
in.next:
  %in.data = call i64 @data_of(ptr %args, i64 %n)
  %in.slot = getelementptr i64, ptr %in, i64 %n
  store i64 %in.data, ptr %in.slot
  %n.next = add i64 %n, 1
  br label %in.loop
out.loop:
  %m = phi i64 [0, %in.loop], [%m.next, %out.next]
  %m.more = icmp slt i64 %m, $outputs
  br i1 %m.more, label %out.next, label %count
out.next:
  %out.data = call i64 @data_of(ptr %rets, i64 %m)
  %out.slot = getelementptr i64, ptr %out, i64 %m
  store i64 %out.data, ptr %out.slot
  %m.next = add i64 %m, 1
  br label %out.loop
count:
$count
  %padded = add i64 %points, ${chunk_less_one}
  %chunks = sdiv i64 %padded, $chunk
  %several = icmp sgt i64 %chunks, 1
  br i1 %several, label %ask, label %alone
ask:
  %available = call i64 @threads(ptr %api, ptr %ctx)
  %too.many = icmp slt i64 %chunks, %available
  %threads = select i1 %too.many, i64 %chunks, i64 %available
  %parallel = icmp sgt i64 %threads, 1
  br i1 %parallel, label %together, label %alone
together:
  call void @share_out(ptr %api, ptr %ctx, ptr %in, ptr %out, i64 %points, i64 %chunks, i64 %threads)
  ret ptr null
alone:
  call void @points(ptr %in, ptr %out, i64 0, i64 %points)
  ret ptr null
}
""")

_BATCH_SIZE = """
  %first = load ptr, ptr %rets
  %dims.p = getelementptr i8, ptr %first, i64 40
  %dims = load ptr, ptr %dims.p
  %points = load i64, ptr %dims
"""
_ONE_POINT = "  %points = add i64 0, 1\n"

# The name under which kernels find the most threads they may use.
THREAD_LIMIT = "graphax_thread_limit"
NAME = "graphax_handler"


def handler(inputs: int, outputs: int, statements: int, batched: bool) -> str:
    """The code of the handler around ``@points(inputs, outputs, begin, end)``."""
    posix = os.name == "posix"
    chunk = max(256, _CHUNK_WORK // max(1, statements) // 64 * 64)
    major, minor = _interface_version()
    return _HANDLER.substitute(
        name=NAME,
        limit=THREAD_LIMIT,
        inputs=inputs,
        outputs=outputs,
        chunk=chunk,
        chunk_less_one=chunk - 1,
        major=major,
        minor=minor,
        count=_BATCH_SIZE if batched else _ONE_POINT,
        yield_core="%ignored = call i32 @sched_yield()" if posix else "",
        declare_yield="declare i32 @sched_yield()" if posix else "",
    )


@cache
def _interface_version() -> tuple[int, int]:
    """The version of XLA's interface, as its header has it."""
    header = (Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h").read_text(encoding="utf-8")
    found = dict(re.findall(r"#define XLA_FFI_API_(MAJOR|MINOR) (\d+)", header))
    return int(found["MAJOR"]), int(found["MINOR"])
