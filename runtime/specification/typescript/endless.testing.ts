process.stdin.resume();
for (;;);
