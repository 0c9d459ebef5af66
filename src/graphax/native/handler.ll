; What XLA calls. Names after a dollar are filled in by handler.py, which also adds an entry for each slot:
;   define internal ptr @entry<n>(ptr %frame), which calls @handle with slot n.

@$limit = external global i64
@$slots = external global [$page x [8 x i64]]
@gone = private constant [$gone_size x i8] c"$gone\00"

declare i64 @$recall(ptr)
declare ptr @malloc(i64)
declare void @free(ptr)
$declare_yield

define i64 @data_of(ptr %buffers, i64 %n) alwaysinline {
  %slot = getelementptr ptr, ptr %buffers, i64 %n
  %buffer = load ptr, ptr %slot
  %place = getelementptr i8, ptr %buffer, i64 $buffer_data
  %data = load i64, ptr %place
  ret i64 %data
}

; A share of the work: {next chunk, chunks done, users, chunks, points, inputs, outputs, slot}
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
  %slot.p = getelementptr ptr, ptr %share, i64 7
  %slot = load ptr, ptr %slot.p
  %code.p = getelementptr ptr, ptr %slot, i64 1
  %code = load ptr, ptr %code.p
  %size.p = getelementptr i64, ptr %slot, i64 4
  %size = load i64, ptr %size.p
  %begin = mul i64 %chunk, %size
  %full = add i64 %begin, %size
  %short = icmp slt i64 %points, %full
  %end = select i1 %short, i64 %points, i64 %full
  call void %code(ptr %in, ptr %outputs, i64 %begin, i64 %end)
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
  %slot.p = getelementptr ptr, ptr %share, i64 7
  %slot = load ptr, ptr %slot.p
  %ignored = atomicrmw sub ptr %slot, i64 1 seq_cst
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
  %call.p = getelementptr i8, ptr %api, i64 $api_num_threads
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
  %call.p = getelementptr i8, ptr %api, i64 $api_error_destroy
  %call = load ptr, ptr %call.p
  call void %call(ptr %args)
  br label %out
out:
  ret void
}

; Whoever is free takes the next chunk. A helper that comes late finds none, so nobody waits for one to start.
define internal void @share_out(ptr %api, ptr %ctx, ptr %slot, ptr %in, ptr %out,
                                i64 %points, i64 %chunks, i64 %threads) {
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
  %slot.p = getelementptr ptr, ptr %share, i64 7
  store ptr %slot, ptr %slot.p
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
  %call.p = getelementptr i8, ptr %api, i64 $api_schedule
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

; Drop a kernel; 1 if somebody uses it, so that it stays.
define i64 @$drop(ptr %slot) {
  %code.p = getelementptr i64, ptr %slot, i64 1
  %code = atomicrmw xchg ptr %code.p, i64 0 seq_cst
  %users = load atomic i64, ptr %slot seq_cst, align 8
  %used = icmp ne i64 %users, 0
  br i1 %used, label %back, label %out
back:
  store atomic i64 %code, ptr %code.p seq_cst, align 8
  ret i64 1
out:
  ret i64 0
}

define internal ptr @handle(ptr %frame, ptr %slot) {
entry:
  %extension.p = getelementptr i8, ptr %frame, i64 $frame_extension
  %extension = load ptr, ptr %extension.p
  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %run, label %asked
asked:
  %type.p = getelementptr i8, ptr %extension, i64 $extension_type
  %type = load i32, ptr %type.p
  %metadata.asked = icmp eq i32 %type, 1
  br i1 %metadata.asked, label %answer, label %run
answer:
  %metadata.p = getelementptr i8, ptr %extension, i64 $extension_metadata
  %metadata = load ptr, ptr %metadata.p
  %major.p = getelementptr i8, ptr %metadata, i64 $metadata_major
  store i32 $major, ptr %major.p
  %minor.p = getelementptr i8, ptr %metadata, i64 $metadata_minor
  store i32 $minor, ptr %minor.p
  %traits.p = getelementptr i8, ptr %metadata, i64 $metadata_traits
  store i32 0, ptr %traits.p
  ret ptr null
run:
  %api.p = getelementptr i8, ptr %frame, i64 $frame_api
  %api = load ptr, ptr %api.p
  %ctx.p = getelementptr i8, ptr %frame, i64 $frame_ctx
  %ctx = load ptr, ptr %ctx.p
  br label %use
use:
  %users = atomicrmw add ptr %slot, i64 1 seq_cst
  %code.p = getelementptr i64, ptr %slot, i64 1
  %code = load atomic ptr, ptr %code.p seq_cst, align 8
  %there = icmp ne ptr %code, null
  br i1 %there, label %read, label %recall
recall:
  %fewer = atomicrmw sub ptr %slot, i64 1 seq_cst
  %failed = call i64 @$recall(ptr %slot)
  %lost = icmp ne i64 %failed, 0
  br i1 %lost, label %refuse, label %use
refuse:
  %error.args = alloca [4 x i64]
  store i64 32, ptr %error.args
  %error.ext = getelementptr i64, ptr %error.args, i64 1
  store i64 0, ptr %error.ext
  %error.text = getelementptr i64, ptr %error.args, i64 2
  store ptr @gone, ptr %error.text
  %error.code = getelementptr i64, ptr %error.args, i64 3
  store i64 13, ptr %error.code
  %error.p = getelementptr i8, ptr %api, i64 $api_error_create
  %error.new = load ptr, ptr %error.p
  %error = call ptr %error.new(ptr %error.args)
  ret ptr %error
read:
  %args.p = getelementptr i8, ptr %frame, i64 $frame_args
  %args = load ptr, ptr %args.p
  %rets.p = getelementptr i8, ptr %frame, i64 $frame_rets
  %rets = load ptr, ptr %rets.p
  %inputs.p = getelementptr i64, ptr %slot, i64 2
  %inputs = load i64, ptr %inputs.p
  %outputs.p = getelementptr i64, ptr %slot, i64 3
  %outputs = load i64, ptr %outputs.p
  %in = alloca i64, i64 %inputs
  %out = alloca i64, i64 %outputs
  br label %in.loop
in.loop:
  %n = phi i64 [0, %read], [%n.next, %in.next]
  %n.more = icmp slt i64 %n, %inputs
  br i1 %n.more, label %in.next, label %out.loop
in.next:
  %in.data = call i64 @data_of(ptr %args, i64 %n)
  %in.slot = getelementptr i64, ptr %in, i64 %n
  store i64 %in.data, ptr %in.slot
  %n.next = add i64 %n, 1
  br label %in.loop
out.loop:
  %m = phi i64 [0, %in.loop], [%m.next, %out.next]
  %m.more = icmp slt i64 %m, %outputs
  br i1 %m.more, label %out.next, label %count
out.next:
  %out.data = call i64 @data_of(ptr %rets, i64 %m)
  %out.slot = getelementptr i64, ptr %out, i64 %m
  store i64 %out.data, ptr %out.slot
  %m.next = add i64 %m, 1
  br label %out.loop
count:
  %batched.p = getelementptr i64, ptr %slot, i64 5
  %batched = load i64, ptr %batched.p
  %several.points = icmp ne i64 %batched, 0
  br i1 %several.points, label %batch, label %share
batch:
  %first = load ptr, ptr %rets
  %dims.p = getelementptr i8, ptr %first, i64 $buffer_dims
  %dims = load ptr, ptr %dims.p
  %batch.size = load i64, ptr %dims
  br label %share
share:
  %points = phi i64 [1, %count], [%batch.size, %batch]
  %chunk.p = getelementptr i64, ptr %slot, i64 4
  %chunk = load i64, ptr %chunk.p
  %more = add i64 %points, %chunk
  %padded = sub i64 %more, 1
  %chunks = sdiv i64 %padded, %chunk
  %several = icmp sgt i64 %chunks, 1
  br i1 %several, label %ask, label %alone
ask:
  %available = call i64 @threads(ptr %api, ptr %ctx)
  %too.many = icmp slt i64 %chunks, %available
  %threads = select i1 %too.many, i64 %chunks, i64 %available
  %parallel = icmp sgt i64 %threads, 1
  br i1 %parallel, label %together, label %alone
together:
  ; Whoever leaves last gives the slot back.
  call void @share_out(ptr %api, ptr %ctx, ptr %slot, ptr %in, ptr %out, i64 %points, i64 %chunks, i64 %threads)
  ret ptr null
alone:
  call void %code(ptr %in, ptr %out, i64 0, i64 %points)
  %left = atomicrmw sub ptr %slot, i64 1 seq_cst
  ret ptr null
}
