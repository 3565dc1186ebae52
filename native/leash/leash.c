/*
 * The leash: stands between hmz and one program, and outlives neither.
 *
 *   leash PARENT DRAIN PROGRAM ARGV0 [ARG...]
 *
 * PARENT is the pid of hmz, DRAIN the milliseconds that what outlives the program may go on for, PROGRAM an absolute
 * path. Standard input, output and error are the program's own: the leash touches none of them.
 *
 * It does three things that a program cannot have done from JavaScript:
 *   - it takes in every descendant that loses its parent, so that none leaves the tree, whatever sessions it makes;
 *   - it hears of the death of hmz, SIGKILL included, and ends the tree;
 *   - it exits only once nothing of the tree is left, with the program's own status or by the program's own signal.
 */

#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How hmz's death is told. A real-time signal: nobody sends it by hand, and it is not one that is passed on. */
#define PARENT_DIED (SIGRTMIN + 5)

/* From TERM to KILL, milliseconds. */
#define GRACE 2000

static pid_t parent;     /* hmz */
static pid_t program;    /* 0 once it has ended */
static int program_status;

static long long now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* -- the tree ---------------------------------------------------------------------------------------------------- */

struct process {
  pid_t pid, parent;
  int ours;
};

static int read_parent(pid_t pid, pid_t *parent_of) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return 0;
  text[size] = 0;
  /* The name is in parentheses and may hold some itself: the fields start after the last one. */
  char *fields = strrchr(text, ')');
  char state;
  int found;
  if (!fields || sscanf(fields + 1, " %c %d", &state, &found) != 2) return 0;
  *parent_of = found;
  return state != 'Z' && state != 'X';
}

/* Every living process of the machine. The caller frees it. */
static struct process *list_processes(size_t *count) {
  size_t room = 256;
  struct process *list = malloc(room * sizeof *list);
  *count = 0;
  DIR *proc = opendir("/proc");
  if (!list || !proc) {
    free(list);
    if (proc) closedir(proc);
    return NULL;
  }
  for (struct dirent *entry; (entry = readdir(proc));) {
    if (!isdigit((unsigned char)entry->d_name[0])) continue;
    if (*count == room) {
      struct process *larger = realloc(list, 2 * room * sizeof *list);
      if (!larger) break;
      list = larger;
      room *= 2;
    }
    struct process *found = &list[*count];
    found->pid = atoi(entry->d_name);
    found->ours = 0;
    if (read_parent(found->pid, &found->parent)) ++*count;
  }
  closedir(proc);
  return list;
}

/*
 * Signals everything below the leash. Who is below is read from the kernel each time: a list that is kept would hold
 * pids that were given again. What loses its parent becomes our own child, so nothing falls out of this.
 */
static void signal_tree(int signal) {
  size_t count;
  struct process *list = list_processes(&count);
  if (!list) {
    if (program) kill(program, signal);
    return;
  }
  for (int grown = 1; grown;) {
    grown = 0;
    for (size_t i = 0; i < count; i++) {
      if (list[i].ours) continue;
      int below = list[i].parent == getpid();
      for (size_t j = 0; !below && j < count; j++) below = list[j].ours && list[j].pid == list[i].parent;
      if (below) list[i].ours = grown = 1;
    }
  }
  for (size_t i = 0; i < count; i++) {
    if (!list[i].ours) continue;
    kill(list[i].pid, signal);
    if (signal == SIGTERM) kill(list[i].pid, SIGCONT); /* A stopped process hears TERM only once it goes on. */
  }
  free(list);
}

/* Takes in what has ended. Returns whether anything is left. */
static int reap(void) {
  for (;;) {
    int status;
    pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended == 0) return 1;
    if (ended < 0) {
      if (errno == EINTR) continue;
      return 0;
    }
    if (ended == program) {
      program = 0;
      program_status = status;
    }
  }
}

/* -- the program ------------------------------------------------------------------------------------------------- */

static void run_program(const char *file, char **argv, const sigset_t *mask, pid_t leash) {
  setsid(); /* `kill 0` in a script must not reach the leash. */
  /* Should somebody kill the leash, the program goes with it; it may have gone already. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != leash) _exit(127);
  sigprocmask(SIG_SETMASK, mask, NULL);
  execvp(file, argv); /* Has a slash: no search, but a script without `#!` goes to sh, as in a shell. */
  int fault = errno;
  dprintf(2, "hmz: cannot start %s: %s\n", file, strerror(fault));
  _exit(fault == ENOENT ? 127 : 126);
}

/* Ends as the program did, so that whoever waits for the leash sees the program. */
static void end_like(int status) {
  if (WIFSIGNALED(status)) {
    int signal = WTERMSIG(status);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none); /* The program has dumped its core; the leash has nothing to show. */
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(signal, &plain, NULL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, signal);
    kill(getpid(), signal);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    _exit(128 + signal);
  }
  _exit(WEXITSTATUS(status));
}

/* -- the leash --------------------------------------------------------------------------------------------------- */

/*
 * hmz is gone, and not only the thread of it that started us: the kernel signals that too, while the pid of the parent
 * stays the same.
 */
static int parent_gone(void) {
  return getppid() != parent;
}

/* The end of a tree: a time to go by itself, TERM, KILL. */
struct ending {
  enum { RUNNING, DRAINING, TERMINATED, KILLING } stage;
  long long due; /* When the next stage comes. */
  int pause;     /* Between two KILLs, milliseconds. */
};

static void terminate(struct ending *ending) {
  if (ending->stage >= TERMINATED) return;
  signal_tree(SIGTERM);
  ending->stage = TERMINATED;
  ending->due = now_ms() + GRACE;
}

static void advance(struct ending *ending, long drain) {
  if (ending->stage == RUNNING && program == 0) {
    ending->stage = DRAINING;
    ending->due = now_ms() + drain;
  }
  if (ending->stage == RUNNING || now_ms() < ending->due) return;
  if (ending->stage == DRAINING) {
    terminate(ending);
    return;
  }
  /*
   * Again and again: what was being forked while the list was read is on the next one. Ever more slowly: what runs as
   * another user, or is stuck in the kernel, does not go for being asked often.
   */
  signal_tree(SIGKILL);
  ending->stage = KILLING;
  ending->pause = ending->pause == 0 ? 10 : ending->pause < 500 ? 2 * ending->pause : 1000;
  ending->due = now_ms() + ending->pause;
}

/* Waits for a signal until the next stage is due. Returns the signal's number, 0 where none came. */
static int wait_for_signal(const sigset_t *set, const struct ending *ending) {
  int signal;
  if (ending->stage == RUNNING) {
    signal = sigwaitinfo(set, NULL);
  } else {
    long long left = ending->due - now_ms();
    if (left < 0) left = 0;
    struct timespec time = {left / 1000, (left % 1000) * 1000000};
    signal = sigtimedwait(set, NULL, &time);
  }
  return signal < 0 ? 0 : signal;
}

static void let_go_of_stdio(void) {
  /* The reader's end of file must mean that the program's side is closed; our copies would hold it open. */
  int null = open("/dev/null", O_RDWR);
  if (null < 0) {
    close(0), close(1), close(2);
    return;
  }
  dup2(null, 0), dup2(null, 1), dup2(null, 2);
  if (null > 2) close(null);
}

int main(int argc, char **argv) {
  if (argc < 5) {
    dprintf(2, "usage: leash PARENT DRAIN PROGRAM ARGV0 [ARG...]\n");
    return 2;
  }
  parent = atoi(argv[1]);
  long drain = atol(argv[2]);

  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  prctl(PR_SET_PDEATHSIG, PARENT_DIED);
  if (parent_gone()) return 0; /* It died before we asked to be told. */
  prctl(PR_SET_CHILD_SUBREAPER, 1);

  pid_t leash = getpid();
  /* Not fork: no page is copied for a child that only starts another program. It writes to nothing of ours. */
  program = vfork();
  if (program < 0) {
    dprintf(2, "hmz: cannot start %s: %s\n", argv[3], strerror(errno));
    return 126;
  }
  if (program == 0) run_program(argv[3], argv + 4, &before, leash);
  let_go_of_stdio();

  struct ending ending = {RUNNING, 0, 0};
  while (reap()) {
    advance(&ending, drain);
    int signal = wait_for_signal(&all, &ending);
    if (signal == PARENT_DIED) {
      if (parent_gone()) terminate(&ending);
    } else if (signal != 0 && signal != SIGCHLD) {
      if (program) kill(program, signal);
      else if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP) terminate(&ending);
    }
  }
  end_like(program_status);
}
