#define _GNU_SOURCE
#include "init.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <net/route.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static void set_address(int control, const char *device, unsigned long request, const char *address) {
    struct ifreq wish = {0};
    struct sockaddr_in *to = (struct sockaddr_in *)&wish.ifr_addr;
    strncpy(wish.ifr_name, device, IFNAMSIZ - 1);
    to->sin_family = AF_INET;
    if (inet_pton(AF_INET, address, &to->sin_addr) != 1 || ioctl(control, request, &wish) != 0)
        give_up("%s cannot have the address or mask %s", device, address);
}

static void up(int control, const char *device) {
    struct ifreq wish = {0};
    strncpy(wish.ifr_name, device, IFNAMSIZ - 1);
    wish.ifr_flags = IFF_UP;
    if (ioctl(control, SIOCSIFFLAGS, &wish) != 0) give_up("%s cannot be turned on: %s", device, strerror(errno));
}

static int device_of(const char *mac, char *device) {
    DIR *cards = opendir("/sys/class/net");
    int found = 0;
    for (struct dirent *card; !found && cards != NULL && (card = readdir(cards)) != NULL;) {
        char path[300], address[32] = "";
        if (card->d_name[0] == '.' || strlen(card->d_name) >= IFNAMSIZ) continue;
        snprintf(path, sizeof path, "/sys/class/net/%s/address", card->d_name);
        FILE *file = fopen(path, "re");
        if (file == NULL) continue;
        found = fscanf(file, "%31s", address) == 1 && strcasecmp(address, mac) == 0;
        fclose(file);
        if (found) strcpy(device, card->d_name);
    }
    if (cards != NULL) closedir(cards);
    return found;
}

/*
 * The seed's file `interfaces`: MAC ADDRESS NETMASK GATEWAY …, one line for each; the first one's gateway is the way out.
 * A gateway of 0.0.0.0 is none: the card is on the underlay, where every address is reached directly. A card comes up with
 * its address, so that `arp_notify` makes it known to switches which last saw the address elsewhere.
 */
void set_up_network(void) {
    int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    up(control, "lo");
    FILE *list = fopen("/data/interfaces", "re");
    if (list == NULL) give_up("the seed volume has no file `interfaces`");
    char line[400], device[IFNAMSIZ], mac[32], address[32], mask[32], gateway[32];
    for (int number = 0; fgets(line, sizeof line, list) != NULL; number += 1) {
        if (sscanf(line, "%31s %31s %31s %31s", mac, address, mask, gateway) != 4) continue;
        /* It may be plugged in while we look. */
        for (long end = now_ms() + disk_limit_ms; !device_of(mac, device); usleep(10000))
            if (now_ms() > end) give_up("there is no network card %s", mac);
        set_address(control, device, SIOCSIFADDR, address);
        set_address(control, device, SIOCSIFNETMASK, mask);
        up(control, device);
        if (number > 0) continue;
        struct rtentry route = {0};
        ((struct sockaddr_in *)&route.rt_dst)->sin_family = AF_INET;
        ((struct sockaddr_in *)&route.rt_genmask)->sin_family = AF_INET;
        struct sockaddr_in *via = (struct sockaddr_in *)&route.rt_gateway;
        via->sin_family = AF_INET;
        int known = inet_pton(AF_INET, gateway, &via->sin_addr) == 1;
        route.rt_flags = via->sin_addr.s_addr == INADDR_ANY ? RTF_UP : RTF_UP | RTF_GATEWAY;
        route.rt_dev = device;
        if (!known || ioctl(control, SIOCADDRT, &route) != 0)
            say("warn", "there is no route through %s: %s", gateway, strerror(errno));
    }
    fclose(list);
    close(control);
}
