"""Two sentences in each language that docs/languages.md says is served: cut at blanks, and no word cut in two.

After article 1 of the Universal Declaration of Human Rights, or everyday text with the language's own signs.
"""

import re

import pytest
from tests.conftest import REPOSITORY

from tacit.text.words import Writing, sentences

SIGNS = '.,;:!?¿¡«»„“”"()؟،؛।॥。።،։՝'
TEXTS = {
    "am": "የሰው ልጅ ሁሉ ሲወለድ ነጻ ነው። በክብርና በመብትም እኩል ነው።",
    "ar": "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. هل وُهبوا عقلًا وضميرًا؟",
    "az": "Bütün insanlar ləyaqət və hüquqlarına görə azad və bərabər doğulurlar. Onların şüurları və vicdanları var.",
    "bn": "সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে। তাঁদের বিবেক এবং বুদ্ধি আছে।",
    "ca": "Tots els éssers humans neixen lliures i iguals en dignitat. Col·laboren, i l'intel·lecte els guia.",
    "cs": "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt.",
    "el": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια. Είναι προικισμένοι με λογική.",
    "en": "All human beings are born free and equal in dignity and rights. Don't they act in a spirit of brotherhood?",
    "es": "Todos los seres humanos nacen libres e iguales en dignidad. ¿Están dotados de razón y conciencia?",
    "fa": "تمام افراد بشر آزاد به دنیا می\u200cآیند. آیا همه می\u200cخواهند برابر باشند؟",
    "fi": "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan. He kuuluvat EU:n kansalaisiin.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité. C'est l'esprit de fraternité\u202f!",
    "he": 'כל בני האדם נולדו בני חורין ושווים בערכם. צה״ל, ארה"ב וג׳ירפה הם מילים.',
    "hi": "सभी मनुष्यों को गौरव और अधिकारों में स्वतन्त्रता प्राप्त है। उन्हें बुद्धि और अन्तरात्मा की देन प्राप्त है।",
    "hy": "Բոլոր մարդիկ ծնվում են ազատ ու հավասար իրենց արժանապատվությամբ։ Նրանք ունեն բանականություն ու խիղճ։",
    "id": "Semua orang dilahirkan merdeka dan mempunyai martabat yang sama. Mereka dikaruniai akal dan hati nurani.",
    "it": "Tutti gli esseri umani nascono liberi ed eguali in dignità. Hanno l'obbligo di agire con fratellanza.",
    "ka": "ყველა ადამიანი იბადება თავისუფალი და თანასწორი. მათ მინიჭებული აქვთ გონება და სინდისი.",
    "ko": "모든 인간은 태어날 때부터 자유로우며 동등하다. 인간은 이성과 양심을 부여받았다.",
    "lt": "Visi žmonės gimsta laisvi ir lygūs savo orumu ir teisėmis. Jiems suteiktas protas ir sąžinė.",
    "ml": "മനുഷ്യരെല്ലാവരും തുല്യാവകാശങ്ങളോടും അന്തസ്സോടും ജനിച്ചവരാണ്. അവന്\u200d\u0d31െ ബുദ്ധിയും മനസ്സാക്ഷിയും ഉണ്ട്.",
    "nl": "Alle mensen worden vrij en gelijk in waardigheid en rechten geboren. Zij zijn begiftigd met verstand.",
    "pl": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i praw. Są oni obdarzeni rozumem.",
    "pt": "Todos os seres humanos nascem livres e iguais em dignidade e em direitos. São dotados de razão.",
    "ru": "Все люди рождаются свободными и равными в своём достоинстве и правах. Они наделены разумом.",
    "si": "සියලු මනුෂ්\u200dයයෝ නිදහස්ව උපත ලබා ඇත. ශ්\u200dරී ලංකාව ද එසේ ය.",
    "sv": "Alla människor är födda fria och lika i värde och rättigheter. De bor i EU:s länder.",
    "ta": "மனிதப் பிறவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர். அவர்கள் மதிப்பிலும் உரிமைகளிலும் சமமானவர்கள்.",
    "tr": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. İstanbul'da akıl ve vicdana sahiptirler.",
    "uk": "Всі люди народжуються вільними і рівними у своїй гідності та правах. Вони мають розум і п'ять чуттів.",
    "ur": "تمام انسان آزاد اور حقوق و عزت کے اعتبار سے برابر پیدا ہوئے ہیں۔ انہیں ضمیر اور عقل ودیعت ہوئی ہے۔",
    "uz": "Barcha odamlar erkin, qadr-qimmat va huquqlarda teng bo‘lib tug‘iladilar. Ular aql va vijdon sohibidirlar.",
    "vi": "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền. Mọi người đều có lý trí.",
}


def test_the_page_names_these_languages() -> None:
    page = (REPOSITORY / "docs" / "languages.md").read_text(encoding="utf-8")
    assert f"\n{', '.join(TEXTS)}.\n" in page


@pytest.mark.parametrize("language", TEXTS)
def test_two_sentences_at_their_blanks(language: str) -> None:
    text = TEXTS[language]
    spelled = text.replace("‘", "ʻ") if language == "uz" else text
    first, second = re.fullmatch(r"(.+?[.!?؟।።։۔])\s(.+)", spelled).groups()  # type: ignore[union-attr]
    expected = [[word.strip(SIGNS + "۔") for word in re.split(r"[\s-]+", each)] for each in (first, second)]
    assert sentences(text, Writing(language=language)) == [list(filter(None, each)) for each in expected]
