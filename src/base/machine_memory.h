/* machine_memory.h: how much memory a process may have: what the machine has, or less where its cgroup
 * (version 1 or 2, or one above it) or `ulimit -v` allows less. */
#ifndef SVI_MACHINE_MEMORY_H
#define SVI_MACHINE_MEMORY_H

struct svi_machine_memory {
    double bytes;   /* 0: not known */
    const char *of; /* "this machine has", "the cgroup allows" or "ulimit -v allows" */
};

struct svi_machine_memory svi_machine_memory(void);

/* What cgroups allow: INFINITY without a limit. `root` stands before the paths of /proc and /sys: "" but for
 * tests. */
double svi_cgroup_memory(const char *root);

#endif
