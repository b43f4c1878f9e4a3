/* plan.h: when the fault comes, and which files it is about (powercut.c says how to ask for it). */
#ifndef PLAN_H
#define PLAN_H

#include "fault/writeback.h"

enum call { WRITE, FSYNC, RENAME, UNLINK, OPEN, TRUNCATE, MKDIR, ANY };

/* What is to become of a call: done; not done, errno is set; done and then the power is cut; a write of which
 * part is done (mode cut: and then the power is cut). */
enum verdict { GO, FAIL, CUT_BEHIND, PART };

/* Is the path (of the folder `at`) the folder or in it? `name`: canonical, also when nothing is there. Keeps
 * errno. */
bool plan_path(int at, const char *path, char name[WB_PATH]);

/* Is the open file in the folder? Notes and forgets descriptors that are; `synced`: each write is. */
void plan_note(int fd, bool synced);
void plan_forget(int fd);
bool plan_descriptor(int fd);
bool plan_writes_synced(int fd);

/* The name that the descriptor was opened under. */
bool plan_name(int fd, char name[WB_PATH]);

/* Before and behind a call under the folder; between them no other thread makes one. `changes`: it changes
 * what the disk holds. Behind FAIL goes plan_fail instead, which returns -1. Where that must be found out
 * first, plan_lock and plan_judge are the two halves of plan_enter. */
enum verdict plan_enter(enum call call, bool changes);
void plan_lock(void);
enum verdict plan_judge(enum call call, bool changes);
void plan_leave(enum verdict v, enum call call);
int plan_fail(void);

/* Linux tells of a failed sync once on every descriptor that was open then: is this one still to be told
 * (errno is set), though another's sync failed? `fresh`: it was opened just now, or told just now. */
bool plan_owes_failure(int fd, bool fresh);

/* How much of a write of this many bytes is done (PART). */
size_t plan_part(size_t length);

bool plan_lies(void); /* fsync does nothing */

/* Between enter and leave: the time that an fsync takes, in which other threads make their calls. */
void plan_pause(void);

/* Ends the process with 99. */
void plan_refuse(const char *what, const char *path);

#endif
