; Functions that replace a C library on a GPU. device.py fills in names after a dollar.

; The angle r and the quadrant q, modulo 4, with a = r + q·π/2, for a from 2^15 on: the digits of 2/π that matter for an
; exponent, times the mantissa. The more significant digits, which are left out, only add whole turns.
@two_by_pi = internal unnamed_addr constant [$words x i64] [$table]
declare i64 @llvm.fshl.i64(i64, i64, i64)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i128 @llvm.abs.i128(i128, i1)
declare double @llvm.fma.f64(double, double, double)

define internal {double, i64} @quadrant(double %a) noinline {
  %bits = bitcast double %a to i64
  %field = lshr i64 %bits, 52
  %low = and i64 %bits, 4503599627370495
  %m = or i64 %low, 4503599627370496
  ; a = m·2^(field - 1075); two digits are for the quadrant, and 64 zeros come before the first digit.
  %place = sub i64 %field, 1013
  %word = lshr i64 %place, 6
  %shift = and i64 %place, 63
  %p0 = getelementptr i64, ptr @two_by_pi, i64 %word
  %p1 = getelementptr i64, ptr %p0, i64 1
  %p2 = getelementptr i64, ptr %p0, i64 2
  %p3 = getelementptr i64, ptr %p0, i64 3
  %w0 = load i64, ptr %p0
  %w1 = load i64, ptr %p1
  %w2 = load i64, ptr %p2
  %w3 = load i64, ptr %p3
  %d0 = call i64 @llvm.fshl.i64(i64 %w0, i64 %w1, i64 %shift)
  %d1 = call i64 @llvm.fshl.i64(i64 %w1, i64 %w2, i64 %shift)
  %d2 = call i64 @llvm.fshl.i64(i64 %w2, i64 %w3, i64 %shift)
  %m.wide = zext i64 %m to i128
  %d1.wide = zext i64 %d1 to i128
  %d2.wide = zext i64 %d2 to i128
  %last = mul i128 %m.wide, %d2.wide
  %last.high = lshr i128 %last, 64
  %middle = mul i128 %m.wide, %d1.wide
  %rest = add i128 %middle, %last.high
  %first = mul i64 %m, %d0
  %first.wide = zext i64 %first to i128
  %first.up = shl i128 %first.wide, 64
  %turns = add i128 %rest, %first.up
  %nearest = lshr i128 %turns, 125
  %nearest.low = trunc i128 %nearest to i64
  %rounded = add i64 %nearest.low, 1
  %q = lshr i64 %rounded, 1
  %signed = shl i128 %turns, 2
  %negative = icmp slt i128 %signed, 0
  %size = call i128 @llvm.abs.i128(i128 %signed, i1 false)
  %size.up = lshr i128 %size, 64
  %high = trunc i128 %size.up to i64
  %low.part = trunc i128 %size to i64
  %zeros = call i64 @llvm.ctlz.i64(i64 %high, i1 false)
  %n = call i64 @llvm.fshl.i64(i64 %high, i64 %low.part, i64 %zeros)
  %n.high = lshr i64 %n, 32
  %n.low = and i64 %n, 4294967295
  %f.top = uitofp i64 %n.high to double
  %f.high = fmul double %f.top, 0x41F0000000000000
  %f.low = uitofp i64 %n.low to double
  %f = fadd double %f.high, %f.low
  %f.kept = fsub double %f, %f.high
  %f.lost = fsub double %f.low, %f.kept
  ; π/2 in two parts
  %lost = fmul double %f.lost, 0x3FF921FB54442D18
  %more = call double @llvm.fma.f64(double %f, double 0x3C91A62633145C07, double %lost)
  %angle = call double @llvm.fma.f64(double %f, double 0x3FF921FB54442D18, double %more)
  %exponent = sub i64 959, %zeros
  %scale.bits = shl i64 %exponent, 52
  %scale = bitcast i64 %scale.bits to double
  %r = fmul double %angle, %scale
  %r.negative = fneg double %r
  %r.signed = select i1 %negative, double %r.negative, double %r
  %one = insertvalue {double, i64} poison, double %r.signed, 0
  %both = insertvalue {double, i64} %one, i64 %q, 1
  ret {double, i64} %both
}
; ----
; x - n·y for the largest whole n with n·y ≤ x, in steps of at most 21 bits of n, each without rounding.
declare $float @llvm.fabs.$kind($float)
declare $float @llvm.copysign.$kind($float, $float)
declare $float @llvm.trunc.$kind($float)
declare $float @llvm.fma.$kind($float, $float, $float)

define internal $float @remainder.$kind($float %x, $float %y) noinline {
entry:
  %a = call $float @llvm.fabs.$kind($float %x)
  %b = call $float @llvm.fabs.$kind($float %y)
  %no.number = fcmp uge $float %a, 0x7FF0000000000000
  %no.divisor = fcmp ueq $float %b, 0.0
  %impossible = or i1 %no.number, %no.divisor
  br i1 %impossible, label %undefined, label %possible
undefined:
  ret $float 0x7FF8000000000000
possible:
  %denormal = fcmp olt $float %b, $smallest
  %raised = fmul $float %b, $raise
  %normal = select i1 %denormal, $float %raised, $float %b
  %normal.bits = bitcast $float %normal to $bits
  %digits = and $bits %normal.bits, $mask
  %normal.field = lshr $bits %normal.bits, $mantissa
  %lowered = select i1 %denormal, $bits $raising, $bits 0
  %field = sub $bits %normal.field, %lowered
  br label %next
next:
  %left.before = phi $float [%a, %possible], [%less, %step]
  %divisor.before = phi $float [%b, %possible], [%divisor, %step]
  %field.before = phi $bits [%field, %possible], [%divisor.field, %step]
  %scale.before = phi $float [1.0, %possible], [%scale, %step]
  ; Scale small numbers up once, together with the divisor, so that nothing is denormal.
  %small = fcmp olt $float %left.before, $tiny
  %never = fcmp oeq $float %scale.before, 1.0
  %now = and i1 %small, %never
  %factor = select i1 %now, $float $raise, $float 1.0
  %left = fmul $float %left.before, %factor
  %divisor = fmul $float %divisor.before, %factor
  %more = select i1 %now, $bits $raising, $bits 0
  %divisor.field = add $bits %field.before, %more
  %scale = select i1 %now, $float $lower, $float %scale.before
  %finished = fcmp olt $float %left, %divisor
  br i1 %finished, label %done, label %step
step:
  %left.bits = bitcast $float %left to $bits
  %left.field = lshr $bits %left.bits, $mantissa
  %near.field = sub $bits %left.field, 20
  %far = icmp sgt $bits %near.field, %divisor.field
  %near.exponent = shl $bits %near.field, $mantissa
  %near.bits = or $bits %digits, %near.exponent
  %near = bitcast $bits %near.bits to $float
  %part = select i1 %far, $float %near, $float %divisor
  %quotient = fdiv $float %left, %part
  %whole = call $float @llvm.trunc.$kind($float %quotient)
  %negated = fneg $float %whole
  %rest = call $float @llvm.fma.$kind($float %negated, $float %part, $float %left)
  ; The quotient may have been rounded up.
  %below = fcmp olt $float %rest, 0.0
  %back = fadd $float %rest, %part
  %less = select i1 %below, $float %back, $float %rest
  br label %next
done:
  %result = fmul $float %left, %scale
  %with.sign = call $float @llvm.copysign.$kind($float %result, $float %x)
  ret $float %with.sign
}
