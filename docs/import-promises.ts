/** The promises about imports; see evidence-promises.ts. */
export const importPromises = [
  {
    promise: 'Each row has one effect, whatever gets lost.',
    tests: {
      'test/core/changes/sent-once.property.test.ts': [
        "a change that ${lookable ? 'can' : 'can not'} be looked up is made at most once, whatever happens",
      ],
      'test/chaos/histories/histories.test.ts': [
        'let no report say what the service denies, and nothing be done twice',
      ],
      'test/core/changes/reconcile.test.ts': [
        'absence is not believed',
        'a retention that is absent each time is for a person after three requests',
        'a delete that was refused after a request without an answer is for a person, and not sent again',
        'a lookup that matches more than a page finds all records',
      ],
      'test/core/imports/existing-in-service.test.ts': ['what the service has already'],
      'test/core/changes/audit-retentions.test.ts': [
        'counts a record that was there long before the import with %s as a double',
      ],
    },
    harder: ['npm run chaos -- --only histories'],
  },
  {
    promise: 'Killed workers send nothing twice.',
    tests: {
      'test/system/changes/killed-sender.test.ts': [
        'retentions are made exactly once each, however often the sender is killed',
        'addons are never made twice, and each that is done is there',
      ],
      'test/system/import/kills.test.ts': ['makes no addon twice, and names those in doubt'],
      'test/system/import/crash.test.ts': [
        'is not woken by export --local, and the same command makes each row once',
      ],
    },
    harder: ['KILLS=50 IMPORT_ROWS=5000 npm run test:soak -- import/kills'],
  },
  {
    promise: 'A frozen process sends nothing late.',
    tests: {
      'test/system/changes/frozen-client.test.ts': [
        'sends nothing when it wakes two seconds after the claim',
      ],
      'test/core/billing/claimed-request.test.ts': [
        'a write whose claim takes longer than two seconds is not sent',
      ],
    },
  },
  {
    promise:
      'Restored backups of the ledger, of Temporal and of files, one or several at once, double nothing.',
    tests: {
      'test/system/import/restored.test.ts': [
        'an import of %s whose ledger was put back from before it began is finished, and sends no row twice',
      ],
      'test/system/import/both-restored.test.ts': [
        'an import of addons whose command is killed, and whose ledger and Temporal are restored to one moment',
      ],
      'test/core/changes/restored-ledger.test.ts': [
        'a backup from before %i of the rows were staged',
        'where the journal was lost or put back too, all that looks unsent is unknown',
        'a resume that a ledger has lost counts what the journal has of it',
      ],
    },
    harder: ['npm run chaos -- --only histories,temporal'],
  },
  {
    promise: 'Of several workers, each may be killed or lost with its folder.',
    tests: {
      'test/acceptance/bucket/fleet-changes.test.ts': [
        'an import and a recovery make each change once although the worker that began them is lost with its disk',
      ],
      'test/chaos/fleet/resume.timed.test.ts': [
        'another worker resumes the runs of a worker that is killed, and all resume without a new attempt once PostgreSQL is back',
      ],
      'test/core/storage/kept-folder.test.ts': [
        'nothing of a step that was given up appears after another one has changed the folder',
        'a log that a step writes beside another one supersedes neither, and two writers of one log are told so',
        'what a killed step has put is removed',
      ],
    },
    harder: ['npm run chaos -- --only fleet'],
  },
  {
    promise: 'The sheet means what is sent, and a cell that cannot be read is refused.',
    tests: {
      'test/core/imports/round-trip.test.ts': ['what an export wrote comes back as what was sent'],
      'test/core/imports/hostile-files.test.ts': ['no file holds the event loop'],
    },
  },
]
