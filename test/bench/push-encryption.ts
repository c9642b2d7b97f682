// The encryption of our push alone: `push-encryption.ts <push service as JSON>`.
import { encryptPush } from '../../src/delivery/push/encrypt-and-send.ts'
import type { TestBrowser } from '../support/servers/push-service.ts'
import { runSender } from './sender.ts'

const { browsers } = JSON.parse(process.argv[2] ?? '') as { browsers: [TestBrowser] }
const [{ endpoint, keys }] = browsers
const notification = {
  title: 'New payment',
  navigate: 'https://tidings.example.com/e/evt_01kahwq7f4e8xbv0a3n9m2c6rt',
  tag: 'bench',
  body: 'Test · Test project',
}
const message = { payload: JSON.stringify({ web_push: 8030, notification }), topic: 'bench' }

await runSender(async count => async () => {
  for (let nth = 0; nth < count; nth++) encryptPush({ endpoint, ...keys }, message, 86_400)
})
