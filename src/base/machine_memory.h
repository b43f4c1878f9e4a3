/* machine_memory.h: the memory that a process may use: the machine's, or less where its cgroup (version 1 or
 * 2, or a parent) or `ulimit -v` allows less. */
#ifndef SVI_MACHINE_MEMORY_H
#define SVI_MACHINE_MEMORY_H

struct svi_machine_memory {
    double bytes;   /* 0: not known */
    const char *of; /* "this machine has", "the cgroup allows" or "ulimit -v allows" */
};

struct svi_machine_memory svi_machine_memory(void);

/* The lowest limit of the process's cgroups in bytes; INFINITY without one. `root` is put before the paths of
 * /proc and /sys; "" except in tests. */
double svi_cgroup_memory(const char *root);

#endif
