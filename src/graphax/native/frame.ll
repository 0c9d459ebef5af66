; The functions that XLA calls. handler.py fills in names after a dollar, and adds an entry for each slot:
;   define internal ptr @entry<n>(ptr %frame), which calls @handle with slot n.

@$slots = external global [$page x [16 x i64]]
@gone = private constant [$gone_size x i8] c"$gone\00"

declare i64 @$recall(ptr)

define internal i64 @number_at(ptr %structure, i64 %offset) alwaysinline {
  %place = getelementptr i8, ptr %structure, i64 %offset
  %number = load i64, ptr %place
  ret i64 %number
}

define internal ptr @pointer_at(ptr %structure, i64 %offset) alwaysinline {
  %place = getelementptr i8, ptr %structure, i64 %offset
  %pointer = load ptr, ptr %place
  ret ptr %pointer
}

; Write the addresses of the data of some buffers.
define internal void @copy_places(ptr %buffers, i64 %count, ptr %target) {
entry:
  br label %head
head:
  %n = phi i64 [0, %entry], [%n.next, %next]
  %more = icmp slt i64 %n, %count
  br i1 %more, label %next, label %out
next:
  %slot = getelementptr ptr, ptr %buffers, i64 %n
  %buffer = load ptr, ptr %slot
  %data = call i64 @number_at(ptr %buffer, i64 $buffer_data)
  %place = getelementptr i64, ptr %target, i64 %n
  store i64 %data, ptr %place
  %n.next = add i64 %n, 1
  br label %head
out:
  ret void
}

; The number of points: that of the first result, or one.
define internal i64 @points_of(ptr %slot, ptr %rets) {
entry:
  %batched = call i64 @number_at(ptr %slot, i64 40)
  %several = icmp ne i64 %batched, 0
  br i1 %several, label %batch, label %one
batch:
  %first = load ptr, ptr %rets
  %dims = call ptr @pointer_at(ptr %first, i64 $buffer_dims)
  %size = load i64, ptr %dims
  ret i64 %size
one:
  ret i64 1
}

; If XLA asks for the version of the interface, answer and return true.
define internal i1 @answered(ptr %frame) {
  %extension = call ptr @pointer_at(ptr %frame, i64 $frame_extension)
  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %no, label %asked
asked:
  %type.p = getelementptr i8, ptr %extension, i64 $extension_type
  %type = load i32, ptr %type.p
  %metadata.asked = icmp eq i32 %type, 1
  br i1 %metadata.asked, label %answer, label %no
answer:
  %metadata = call ptr @pointer_at(ptr %extension, i64 $extension_metadata)
  %major.p = getelementptr i8, ptr %metadata, i64 $metadata_major
  store i32 $major, ptr %major.p
  %minor.p = getelementptr i8, ptr %metadata, i64 $metadata_minor
  store i32 $minor, ptr %minor.p
  %traits.p = getelementptr i8, ptr %metadata, i64 $metadata_traits
  %traits = load i32, ptr @traits
  store i32 %traits, ptr %traits.p
  ret i1 true
no:
  ret i1 false
}

; The kernel of a slot, with one more user; null if it cannot be loaded again.
define internal ptr @acquire(ptr %slot) {
entry:
  br label %use
use:
  %users = atomicrmw add ptr %slot, i64 1 seq_cst
  %code.p = getelementptr i64, ptr %slot, i64 1
  %code = load atomic ptr, ptr %code.p seq_cst, align 8
  %there = icmp ne ptr %code, null
  br i1 %there, label %out, label %recall
recall:
  %fewer = atomicrmw sub ptr %slot, i64 1 seq_cst
  %failed = call i64 @$recall(ptr %slot)
  %lost = icmp ne i64 %failed, 0
  br i1 %lost, label %out.lost, label %use
out:
  ret ptr %code
out.lost:
  ret ptr null
}

; An error for XLA, with one of XLA's codes.
define internal ptr @refusal(ptr %api, ptr %text, i64 %code) {
  %args = alloca [4 x i64]
  store i64 32, ptr %args
  %ext.p = getelementptr i64, ptr %args, i64 1
  store i64 0, ptr %ext.p
  %text.p = getelementptr i64, ptr %args, i64 2
  store ptr %text, ptr %text.p
  %code.p = getelementptr i64, ptr %args, i64 3
  store i64 %code, ptr %code.p
  %new = call ptr @pointer_at(ptr %api, i64 $api_error_create)
  %error = call ptr %new(ptr %args)
  ret ptr %error
}

; Drop a kernel. Returns 1 if it is in use and therefore stays.
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
