/** What `hmz --help` says. */

export const USAGE = "usage: hmz <command> …";

export const HELP = `${USAGE}

Runs flows: ordinary async code that drives coding agents, unattended.

  exec     run one flow to its end
  flows    list the flows that can be run here; show what one needs
  new      write a flow of your own, with its test
  epics    list the runs that were; show, trace, export, resume one
  demo     see it at work: two agents, no account, no network
  doctor   look at what this machine has for hmz, and say what is missing

  hmz <command> --help    what a command takes, with an example
  hmz --version           the version of this copy

Example:
  hmz new twice && hmz flows twice
`;
