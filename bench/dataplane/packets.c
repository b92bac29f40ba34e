/*
 * Sends frames into one tap and takes them out of another one, as the QEMUs of two hosts do, and says what a packet cost
 * the machine in CPU time. One thread does both, bound to one CPU: the kernel carries a packet all the way within the write,
 * so the thread's own CPU time holds the whole path, whatever else the machine does meanwhile, and no wake-up of
 * another CPU is in it.
 *
 * A path whose taps are named "-" begins and ends in sockets instead: the guests' own network stacks are part of it. Several
 * paths may have a tap in common. What came to other taps meanwhile, such as copies, is taken out when the time has been taken.
 *
 * Arguments: the CPU, then eight per path, as `main` names them.
 * Standard input: lines "PATH PACKETS". Each is answered by "CPU-NANOSECONDS RECEIVED COPIES".
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PATHS 16
#define VNET 10
#define FLOWS 64
/* Below what a tap's queue (500 frames) and a socket's buffer (212 KiB) hold. */
#define BURST 128
#define PORT 7000
#define FRAME (14 + 20 + 8 + 18)

struct path {
  int sockets;
  int senders[FLOWS];
  struct sockaddr_in to;
  int in;
  int out;
  unsigned char frames[FLOWS][VNET + FRAME];
};
static struct path paths[PATHS];

static void die(const char *what)
{
  perror(what);
  exit(1);
}

static void enter(int pid)
{
  char name[64];
  snprintf(name, sizeof(name), "/proc/%d/ns/net", pid);
  int fd = open(name, O_RDONLY);
  if (fd < 0 || setns(fd, CLONE_NEWNET))
    die(name);
  close(fd);
}

static int open_tap(int pid, const char *name)
{
  struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
  enter(pid);
  int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
  strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  if (fd < 0 || ioctl(fd, TUNSETIFF, &request))
    die(name);
  return fd;
}

/* Of a tap that an earlier path has already: a tap is opened once. */
struct end {
  char *pid, *name;
  int fd;
};
static struct end ends[2 * PATHS];
static int ends_count;

static int tap_of(char *pid, char *name)
{
  for (int i = 0; i < ends_count; i++)
    if (!strcmp(ends[i].pid, pid) && !strcmp(ends[i].name, name))
      return ends[i].fd;
  ends[ends_count] = (struct end){.pid = pid, .name = name, .fd = open_tap(atoi(pid), name)};
  return ends[ends_count++].fd;
}

static void parse_mac(const char *text, unsigned char *mac)
{
  unsigned b[6];
  if (sscanf(text, "%x:%x:%x:%x:%x:%x", b, b + 1, b + 2, b + 3, b + 4, b + 5) != 6)
    die(text);
  for (int i = 0; i < 6; i++)
    mac[i] = b[i];
}

static void build(unsigned char *frame, char **a, int port)
{
  unsigned char *ip = frame + VNET + 14, *udp = ip + 20;
  uint32_t sum = 0;
  parse_mac(a[5], frame + VNET);
  parse_mac(a[4], frame + VNET + 6);
  frame[VNET + 12] = 0x08;
  ip[0] = 0x45;
  ip[3] = FRAME - 14;
  ip[6] = 0x40;
  ip[8] = 64;
  ip[9] = 17;
  inet_pton(AF_INET, a[6], ip + 12);
  inet_pton(AF_INET, a[7], ip + 16);
  for (int i = 0; i < 20; i += 2)
    sum += ip[i] << 8 | ip[i + 1];
  sum = (sum & 0xffff) + (sum >> 16);
  sum = ~((sum & 0xffff) + (sum >> 16));
  ip[10] = sum >> 8;
  ip[11] = sum;
  udp[0] = port >> 8;
  udp[1] = port;
  udp[2] = PORT >> 8;
  udp[3] = PORT & 255;
  udp[5] = FRAME - 34;
}

static int open_socket(const char *address, int port)
{
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, address, &own.sin_addr);
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof(own)))
    die(address);
  return fd;
}

static void open_path(struct path *p, char **a)
{
  p->sockets = a[1][0] == '-';
  for (int flow = 0; flow < FLOWS; flow++)
    build(p->frames[flow], a, 20000 + flow);
  if (!p->sockets) {
    p->in = tap_of(a[0], a[1]);
    p->out = tap_of(a[2], a[3]);
    return;
  }
  p->to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(PORT)};
  inet_pton(AF_INET, a[7], &p->to.sin_addr);
  enter(atoi(a[0]));
  for (int flow = 0; flow < FLOWS; flow++)
    p->senders[flow] = open_socket(a[6], 20000 + flow);
  enter(atoi(a[2]));
  p->out = open_socket(a[7], PORT);
}

static int send_one(struct path *p, int flow)
{
  if (!p->sockets)
    return write(p->in, p->frames[flow], VNET + FRAME) == VNET + FRAME;
  return sendto(p->senders[flow], p->frames[flow], FRAME - 42, 0, (struct sockaddr *)&p->to, sizeof(p->to)) == FRAME - 42;
}

static uint64_t cpu_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Takes out what has arrived; ours only, since a host's own stack may multicast into a plain tap. */
static int drain(struct path *p)
{
  unsigned char frame[2048];
  int received = 0;
  for (;;) {
    ssize_t length = read(p->out, frame, sizeof(frame));
    if (length < 0)
      return received;
    received += p->sockets ? length == FRAME - 42 : length == VNET + FRAME && frame[VNET + 12] == 0x08 && frame[VNET + 14 + 9] == 17;
  }
}

static void measure(struct path *p, int packets, int count)
{
  int received = 0;
  for (int i = 0; i < count; i++)
    drain(&paths[i]);
  uint64_t before = cpu_ns();
  for (int sent = 0; sent < packets; sent += BURST) {
    for (int i = 0; i < BURST && sent + i < packets; i++)
      if (!send_one(p, i % FLOWS))
        die("sending a packet");
    received += drain(p);
  }
  uint64_t spent = cpu_ns() - before;
  /* Left over where the kernel put work off: received, and late. */
  struct pollfd waiting = {.fd = p->out, .events = POLLIN};
  while (received < packets && poll(&waiting, 1, 200) > 0)
    received += drain(p);
  int copies = 0;
  for (int i = 0; i < count; i++)
    copies += drain(&paths[i]);
  printf("%llu %d %d\n", (unsigned long long)spent, received, copies);
  fflush(stdout);
}

int main(int argc, char **argv)
{
  /* usage: packets CPU {SENDER-PID SENDER-TAP RECEIVER-PID RECEIVER-TAP SOURCE-MAC DESTINATION-MAC SOURCE DESTINATION}... */
  int count = (argc - 2) / 8, path, packets;
  cpu_set_t cpu;
  if (argc < 10 || count > PATHS)
    return 2;
  CPU_ZERO(&cpu);
  CPU_SET(atoi(argv[1]), &cpu);
  if (sched_setaffinity(0, sizeof(cpu), &cpu))
    die("binding to a CPU");
  for (int i = 0; i < count; i++)
    open_path(&paths[i], argv + 2 + 8 * i);
  while (scanf("%d %d", &path, &packets) == 2)
    if (path >= 0 && path < count)
      measure(&paths[path], packets, count);
  return 0;
}
