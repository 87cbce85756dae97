#!/usr/bin/env node
// Runs the binary of the platform package that npm installed beside this one: same arguments, streams, signals and exit code.
'use strict';
const { spawn } = require('node:child_process');
const { constants } = require('node:os');
const { isatty } = require('node:tty');

const EXIT_OF_ERROR = 2;
const platform = `${process.platform}-${process.arch}`;
const ours = require('./package.json');
const packageName = `${ours.name}-${platform}`;

function fail(message) {
  console.error(`contextweaver: ${message}`);
  process.exit(EXIT_OF_ERROR);
}

function binary() {
  try {
    return require.resolve(`${packageName}/bin/contextweaver${process.platform === 'win32' ? '.exe' : ''}`);
  } catch {
    if (!(packageName in ours.optionalDependencies)) {
      const known = Object.keys(ours.optionalDependencies).map((name) => name.slice(ours.name.length + 1));
      return fail(`there is no package for ${platform}, only for ${known.join(', ')}.\n`
        + 'Build it from source with Rust: cargo install --locked --path CHECKOUT');
    }
    return fail(`the package ${packageName} is not installed. npm leaves it out with --omit=optional or --no-optional, `
      + 'and when node_modules was copied from another platform.\n'
      + `Install again without these, or add it: npm install ${packageName}@${ours.version}`);
  }
}

const child = spawn(binary(), process.argv.slice(2), { stdio: 'inherit' });

// A terminal sends ^C to the whole group, so the binary already has it; a second one would not be what was typed.
const onTerminal = [0, 1, 2].some((stream) => isatty(stream));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']) {
  process.on(signal, () => {
    if (!(onTerminal && (signal === 'SIGINT' || signal === 'SIGQUIT'))) child.kill(signal);
  });
}

child.on('error', (error) => fail(`${error.path ?? packageName} cannot be run: ${error.message}`));
child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code);
  // Ended by a signal: so does this process, for whoever looks at how it ended.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  // Not reached by what cannot be caught or ends the process; the shell's number for the rest.
  setTimeout(() => process.exit(128 + constants.signals[signal]), 100);
});
