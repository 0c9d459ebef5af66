; Kernels on a GPU: each call is one launch on XLA's stream.

; XLA may record launches in CUDA graphs (XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE). It records them again when
; arrays move, and keeps a graph no longer than the program that needs its kernels.
@traits = private constant i32 1
@no_stream = private constant [44 x i8] c"a kernel of graphax has no stream to run on\00"
@unknown = private constant [38 x i8] c"the driver of the GPU gives no reason\00"
declare i32 @cuLaunchKernel(ptr, i32, i32, i32, i32, i32, i32, i32, ptr, ptr, ptr)
declare i32 @cuGetErrorString(i32, ptr)

; XLA's stream; null if it has none.
define internal ptr @stream(ptr %api, ptr %ctx) {
  %args = alloca [4 x i64]
  store i64 32, ptr %args
  %ext.p = getelementptr i64, ptr %args, i64 1
  store i64 0, ptr %ext.p
  %ctx.p = getelementptr i64, ptr %args, i64 2
  store ptr %ctx, ptr %ctx.p
  %stream.p = getelementptr i64, ptr %args, i64 3
  store ptr null, ptr %stream.p
  %call = call ptr @pointer_at(ptr %api, i64 $api_stream)
  %error = call ptr %call(ptr %args)
  call void @forget(ptr %api, ptr %error)
  %stream = load ptr, ptr %stream.p
  ret ptr %stream
}

; The driver's description of an error, as an error for XLA.
define internal ptr @failure(ptr %api, i32 %number) {
  %text.p = alloca ptr
  store ptr null, ptr %text.p
  %ignored = call i32 @cuGetErrorString(i32 %number, ptr %text.p)
  %found = load ptr, ptr %text.p
  %nothing = icmp eq ptr %found, null
  %text = select i1 %nothing, ptr @unknown, ptr %found
  ; Running out of memory has its own code, in the driver and in XLA.
  %exhausted = icmp eq i32 %number, 2
  %code = select i1 %exhausted, i64 8, i64 13
  %error = call ptr @refusal(ptr %api, ptr %text, i64 %code)
  ret ptr %error
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
  %stream = call ptr @stream(ptr %api, ptr %ctx)
  %none = icmp eq ptr %stream, null
  br i1 %none, label %refuse, label %find
find:
  %kernel = call ptr @acquire(ptr %slot)
  %lost = icmp eq ptr %kernel, null
  br i1 %lost, label %refuse, label %launch
refuse:
  %reason = phi ptr [@no_stream, %run], [@gone, %find]
  %refused = call ptr @refusal(ptr %api, ptr %reason, i64 13)
  ret ptr %refused
launch:
  %args = call ptr @pointer_at(ptr %frame, i64 $frame_args)
  %rets = call ptr @pointer_at(ptr %frame, i64 $frame_rets)
  %inputs = call i64 @number_at(ptr %slot, i64 16)
  %outputs = call i64 @number_at(ptr %slot, i64 24)
  ; The arguments of the kernel: operands, results, and the number of points.
  %arrays = add i64 %inputs, %outputs
  %given = add i64 %arrays, 1
  %buffer = alloca i64, i64 %given
  %results = getelementptr i64, ptr %buffer, i64 %inputs
  %count.p = getelementptr i64, ptr %buffer, i64 %arrays
  call void @copy_places(ptr %args, i64 %inputs, ptr %buffer)
  call void @copy_places(ptr %rets, i64 %outputs, ptr %results)
  %points.own = call i64 @points_of(ptr %slot, ptr %rets)
  ; Threads that share a point count as points.
  %sharing = call i64 @number_at(ptr %slot, i64 56)
  %points = mul i64 %points.own, %sharing
  store i64 %points, ptr %count.p
  %size = alloca i64
  %bytes = shl i64 %given, 3
  store i64 %bytes, ptr %size
  %extra = alloca [5 x i64]
  store i64 1, ptr %extra
  %extra1 = getelementptr i64, ptr %extra, i64 1
  store ptr %buffer, ptr %extra1
  %extra2 = getelementptr i64, ptr %extra, i64 2
  store i64 2, ptr %extra2
  %extra3 = getelementptr i64, ptr %extra, i64 3
  store ptr %size, ptr %extra3
  %extra4 = getelementptr i64, ptr %extra, i64 4
  store i64 0, ptr %extra4
  ; Few points are spread over more blocks, and blocks that need much memory are small.
  %many = icmp sgt i64 %points, $few_points
  %room = call i64 @number_at(ptr %slot, i64 32)
  %fits = icmp sle i64 %room, $large_room
  %large = and i1 %many, %fits
  %threads = select i1 %large, i64 $threads, i64 32
  %points.each = call i64 @number_at(ptr %slot, i64 48)
  %portion = mul i64 %threads, %points.each
  %more = add i64 %points, %portion
  %padded = sub i64 %more, 1
  %blocks.own = sdiv i64 %padded, %portion
  ; Warps that share the points of a warp are in neighbouring blocks.
  %portions = call i64 @number_at(ptr %slot, i64 64)
  %blocks = mul i64 %blocks.own, %portions
  %warps = lshr i64 %threads, 5
  %rooms = mul i64 %warps, %room
  %blocks.short = trunc i64 %blocks to i32
  %threads.short = trunc i64 %threads to i32
  %rooms.short = trunc i64 %rooms to i32
  %result = call i32 @cuLaunchKernel(ptr %kernel, i32 %blocks.short, i32 1, i32 1, i32 %threads.short, i32 1, i32 1,
                                     i32 %rooms.short, ptr %stream, ptr null, ptr %extra)
  %left = atomicrmw sub ptr %slot, i64 1 seq_cst
  %failed = icmp ne i32 %result, 0
  br i1 %failed, label %complain, label %done
complain:
  %complaint = call ptr @failure(ptr %api, i32 %result)
  ret ptr %complaint
done:
  ret ptr null
}
