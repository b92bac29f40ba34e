# Boot sector with which accelerator.ts finds out what works: from real mode to 64-bit mode with paging, there once what a
# kernel does and not every KVM can emulate (XGETBV, XSAVE, XRSTOR, CMPXCHG16B), then one byte to QEMU's debug-exit port.
#   as --64 probe.S -o probe.o && ld -m elf_x86_64 -Ttext 0x7c00 --oformat binary probe.o -o probe.bin
  .code16
  .globl _start
_start:
  cli
  xorw %ax, %ax
  movw %ax, %ds
  movw %ax, %es
  movw %ax, %ss
  movw $0x7c00, %sp
  cld
  # Tables from 0x1000, three pages: the first 2 MiB are mapped to themselves.
  movw $0x1000, %di
  xorl %eax, %eax
  movw $0xc00, %cx
  rep stosl
  movw $0x2003, 0x1000
  movw $0x3003, 0x2000
  movw $0x0083, 0x3000
  movl $0x1000, %eax
  movl %eax, %cr3
  # What the processor has: bit 13 cmpxchg16b, bit 26 xsave.
  movl $1, %eax
  cpuid
  movl %ecx, %ebp
  movl $0x620, %ebx # physical address extension, FXSR, SIMD exceptions
  btl $26, %ebp
  jnc 1f
  orl $0x40000, %ebx # OSXSAVE
1:
  movl %ebx, %cr4
  movl $0xc0000080, %ecx
  rdmsr
  orl $0x100, %eax # long mode
  wrmsr
  lgdt descriptors
  movl $0x80000003, %eax # paging, monitor coprocessor, protection
  movl %eax, %cr0
  ljmp $8, $long

  .code64
long:
  movl $16, %eax
  movw %ax, %ds
  movw %ax, %es
  movw %ax, %ss
  movl $0x6000, %edi
  fxsave (%rdi)
  fxrstor (%rdi)
  btl $26, %ebp
  jnc 2f
  xorl %ecx, %ecx
  xgetbv
  movl $0x7000, %edi
  xsave (%rdi)
  xrstor (%rdi)
2:
  btl $13, %ebp
  jnc 3f
  xorl %eax, %eax
  xorl %edx, %edx
  movl $1, %ebx
  movl $2, %ecx
  movl $0x5000, %edi
  movq %rax, (%rdi)
  movq %rax, 8(%rdi)
  lock cmpxchg16b (%rdi)
  cmpl $1, (%rdi)
  jne stop
3:
  movb $0x15, %al
  outb %al, $0xf4
stop:
  hlt
  jmp stop

  .balign 8
table:
  .quad 0
  .quad 0x00209a0000000000 # 64-bit code
  .quad 0x0000920000000000 # data
descriptors:
  .word descriptors - table - 1
  .long table
  .org 510
  .word 0xaa55
