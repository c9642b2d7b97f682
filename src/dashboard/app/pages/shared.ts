import '../changes.ts'
import '../channels/api.ts'
import '../components/action-button.tsx'
import '../components/confirm-button.tsx'
import '../components/inline-form.tsx'
import '../components/item.tsx'
import '../components/layout.tsx'
import '../components/linked-text.tsx'
import '../components/pages.tsx'
import '../components/secret-once.tsx'
import '../event/json-tree.tsx'
import '../time-texts.ts'
import '../openid/visit-problem.tsx'
import '../threads/alarms.tsx'

// Modules that most pages but the feed share. Each group of pages imports this file, so that they
// are one script, and not one for each combination of pages.
