/** Closes a run with the one line that continuous integration reads. */
export class TallyReporter {
  onRunComplete(_contexts, results) {
    const broken = results.testResults.filter((file) => file.testExecError !== undefined).length;
    const failed = results.numFailedTests + broken;
    setImmediate(() => process.stdout.write(`${results.numPassedTests} passed, ${failed} failed\n`));
  }
}

// Jest takes a reporter from the default export.
export { TallyReporter as default };
