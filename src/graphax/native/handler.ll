; Kernels on a CPU: points are distributed to threads.

@traits = private constant i32 0
@$limit = external global i64
declare ptr @malloc(i64)
declare void @free(ptr)
$declare_yield

; The state of one call: {next chunk, chunks done, users, chunks, points, inputs, outputs, slot}
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

; The maximum number of threads, given XLA's pool and the user's limit.
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

; The next free thread takes the next chunk. A helper that starts late finds none left, so no thread waits for it.
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
  ; A working helper may be waiting for this core.
  $yield_core
  br label %wait
out.block:
  call void @leave(ptr %share)
  ret void
}

define internal ptr @handle(ptr %frame, ptr %slot) {
entry:
  %told = call i1 @answered(ptr %frame)
  br i1 %told, label %fine, label %run
fine:
  ret ptr null
run:
  %api = call ptr @pointer_at(ptr %frame, i64 $frame_api)
  %ctx = call ptr @pointer_at(ptr %frame, i64 $frame_ctx)
  %code = call ptr @acquire(ptr %slot)
  %lost = icmp eq ptr %code, null
  br i1 %lost, label %refuse, label %read
refuse:
  %error = call ptr @refusal(ptr %api, ptr @gone, i64 13)
  ret ptr %error
read:
  %args = call ptr @pointer_at(ptr %frame, i64 $frame_args)
  %rets = call ptr @pointer_at(ptr %frame, i64 $frame_rets)
  %inputs = call i64 @number_at(ptr %slot, i64 16)
  %outputs = call i64 @number_at(ptr %slot, i64 24)
  %in = alloca i64, i64 %inputs
  %out = alloca i64, i64 %outputs
  call void @copy_places(ptr %args, i64 %inputs, ptr %in)
  call void @copy_places(ptr %rets, i64 %outputs, ptr %out)
  %points = call i64 @points_of(ptr %slot, ptr %rets)
  %chunk = call i64 @number_at(ptr %slot, i64 32)
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
  ; The last thread to finish releases the slot.
  call void @share_out(ptr %api, ptr %ctx, ptr %slot, ptr %in, ptr %out, i64 %points, i64 %chunks, i64 %threads)
  ret ptr null
alone:
  call void %code(ptr %in, ptr %out, i64 0, i64 %points)
  %left = atomicrmw sub ptr %slot, i64 1 seq_cst
  ret ptr null
}
